"""The index: one row per recording with its different words, and the query that reads it.

Words have no positions there, which keeps a row near a tenth of a long transcript; phrases are
looked for in the recordings themselves. PostgreSQL's own positions end at 16,383 words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db import connection
from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from recording.library.search import hits
from recording.library.search.words import text_terms
from recording.models import Recording, SearchTerms

# Pages that one step of FTS5 merges: a step holds SQLite's lock for some 0.1 s.
MERGE_PAGES = 64


@dataclass(frozen=True, slots=True)
class Position:
    """A recording's place in the order of results; `skip` of its hits were shown already."""

    time: datetime
    pk: int
    skip: int = 0


def terms_of(account: AbstractUser, content: Mapping[str, Any]) -> str:
    """Return the index row of a recording's content."""
    terms = text_terms(each.text for each in hits.texts(content))
    return " ".join((_account_term(account.pk), *(f"1{term}" for term in terms)))


def store(recording: Recording, terms: str) -> None:
    """Write or replace a recording's row, in the caller's transaction."""
    SearchTerms.objects.update_or_create(recording=recording, defaults={"terms": terms})


def purge_deleted() -> None:
    """Remove the words of deleted rows from the index of SQLite, in short steps.

    FTS5 only marks them as deleted until it merges its segments. On PostgreSQL, vacuum does this.
    """
    if connection.vendor != "sqlite":
        return
    pages = -MERGE_PAGES  # Negative: of all segments, however few there are.
    while _merge(pages):
        pages = MERGE_PAGES


def _merge(pages: int) -> bool:
    """Merge some pages of the FTS5 index; True if it changed, so that more can be left."""
    connection.ensure_connection()
    before = connection.connection.total_changes
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO recording_search (recording_search, rank) VALUES ('merge', %s)",
            [pages],
        )
    # FTS5's own rule: the statement itself counts as one change.
    return bool(connection.connection.total_changes - before >= 2)


def _account_term(pk: int) -> str:
    """Return a term of this account's rows alone, so that the index skips all others."""
    return f"0{pk}"


def candidates(
    account: AbstractUser,
    terms: Collection[str],
    period: Q,
    start: Position | None,
    *,
    at_most: int,
) -> Iterator[tuple[Position, int]]:
    """Return recordings with all terms, newest first, and the size of each in bytes.

    From a position on, if there is one.
    """
    rows = Recording.objects.filter(
        account_id=account.pk, pk__in=_matching(account.pk, terms)
    ).annotate(time=Coalesce("recorded_at", "created_at"))
    if start:
        same = Q(time=start.time, pk__lte=start.pk)
        rows = rows.filter(Q(time__lt=start.time) | same)
    columns = rows.filter(period).order_by("-time", "-pk")
    for time, pk, size in columns.values_list("time", "pk", "size")[:at_most]:
        yield Position(time, pk), size


def _matching(account_pk: int, terms: Collection[str]) -> RawSQL:
    """Return the subquery for the rows that have all terms."""
    wanted = [_account_term(account_pk), *(f"1{term}" for term in terms)]
    if connection.vendor == "postgresql":
        return RawSQL(
            "SELECT recording_id FROM recording_searchterms "
            "WHERE recording_search_split(terms) @> %s::text[]",
            [wanted],
        )
    return RawSQL(
        "SELECT rowid FROM recording_search WHERE recording_search MATCH %s",
        [" AND ".join(f'"{term}"' for term in wanted)],
    )
