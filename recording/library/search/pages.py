"""Run a search, page by page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.contrib.auth.models import AbstractUser
from django.db.models import Q

from recording.library import cursors, event_data, times
from recording.library.search import hits, index, words
from recording.library.search.hits import SearchHit
from recording.library.search.index import Position
from recording.library.search.limits import (
    SearchQueryError,
    SearchTimeoutError,
    deadline,
)
from recording.models import Recording

LARGEST_LIMIT = 100
# What one page reads to find its hits. A search that needs more has further pages.
MOST_RECORDINGS = 200
MOST_BYTES = 32 * 1_048_576


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Hits in their order. Even a page without hits may have a `next_cursor`: then go on."""

    hits: list[SearchHit]
    next_cursor: str | None


def search(
    account: AbstractUser,
    query: str,
    *,
    limit: int = 20,
    cursor: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> SearchPage:
    """Find recordings of an account that have all words and "quoted phrases" of a query.

    The newest first, by the time of recording, or else of import; `since` and `until` (excluded)
    limit it; UTC without an offset. Raises SearchQueryError, also for a query that takes more
    than the deadline for a single recording.
    """
    phrases = phrases_of(query)
    if not 1 <= limit <= LARGEST_LIMIT:
        raise SearchQueryError(f"limit must be from 1 to {LARGEST_LIMIT}.")
    start = None if cursor is None else _read_cursor(cursor)
    try:
        period = times.period(since=since, until=until)
    except OverflowError as error:
        raise SearchQueryError(str(error)) from error
    terms = {term for phrase in phrases for term in words.terms(phrase)}
    with deadline():
        return _page(account, phrases, terms, period, start, limit)


def _page(
    account: AbstractUser,
    phrases: Sequence[words.Tokens],
    terms: set[str],
    period: Q,
    start: Position | None,
    limit: int,
) -> SearchPage:
    found: list[SearchHit] = []
    size = 0
    candidates = index.candidates(
        account, terms, period, start, at_most=MOST_RECORDINGS + 1
    )
    for number, (position, own_size) in enumerate(candidates):
        size += own_size
        is_full = len(found) == limit or number == MOST_RECORDINGS
        if is_full or (number and size > MOST_BYTES):
            return SearchPage(found, _cursor(position))
        skip = start.skip if start and start.pk == position.pk else 0
        try:
            new = _hits(position.pk, phrases)[skip:]
        except SearchTimeoutError:
            if not number:
                raise
            return SearchPage(found, _cursor(position))
        room = limit - len(found)
        found += new[:room]
        if len(new) > room:
            return SearchPage(found, _cursor(replace(position, skip=skip + room)))
    return SearchPage(found, None)


def _hits(pk: int, phrases: Sequence[words.Tokens]) -> list[SearchHit]:
    recording = Recording.objects.filter(pk=pk).first()
    if recording is None:  # deleted since it was found
        return []
    return hits.of_recording(event_data.readable(recording), phrases)


def _cursor(position: Position) -> str:
    return cursors.write(position.time, position.pk, position.skip)


def _read_cursor(cursor: str) -> Position:
    try:
        return Position(*cursors.read(cursor, datetime, int, int))
    except ValueError as error:
        raise SearchQueryError(
            "cursor is not one that this search returned."
        ) from error


LONGEST = 1000  # characters
MOST_PHRASES = 32

QUOTED_OR_PLAIN = re.compile('["“”„]([^"“”„]*)["“”„]?|([^\\s"“”„]+)')


def phrases_of(query: str) -> list[tuple[str, ...]]:
    """Return the phrases of a query, each once, as tokens. Raises SearchQueryError.

    What stands between quotation marks or between spaces is a phrase: its words follow one
    another. A quotation that is not closed ends with the query.
    """
    if len(query) > LONGEST:
        raise SearchQueryError(f"query is longer than {LONGEST} characters.")
    parts = (match[1] or match[2] or "" for match in QUOTED_OR_PLAIN.finditer(query))
    found = dict.fromkeys(tuple(words.tokens(words.folded(part))) for part in parts)
    found.pop((), None)
    if not found:
        raise SearchQueryError("query has no word to search for.")
    if len(found) > MOST_PHRASES:
        raise SearchQueryError(f"query has more than {MOST_PHRASES} words or phrases.")
    if max(map(len, found)) > words.MOST_TOKENS:
        raise SearchQueryError(
            f"query has a phrase of more than {words.MOST_TOKENS} words (in scripts without spaces, "
            "characters)."
        )
    return list(found)
