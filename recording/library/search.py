"""Search the recordings of one account: those that contain each word, newest first.

A search reads the account's folded texts, a few at a time, until it has a page or its time is over.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db.models import BooleanField, ExpressionWrapper, Q

from recording.library import event_data, reading
from recording.models import Recording
from webhooks_core.errors import BadRequestError

LONGEST, MOST_WORDS = 1000, 32
# Recordings that one statement reads, and seconds after which no further one starts.
AT_ONCE, DEADLINE_S = 25, 5.0
BEFORE, LENGTH = 60, 240  # characters of a snippet: before the first match, and in all
WORD = re.compile(r'"([^"]*)"?|([^\s"]+)')


@dataclass(frozen=True, slots=True)
class SearchHit:
    """The text of a recording that matches best; `field` is title, summary or transcript.

    `speaker`, `start_s` and `end_s` are those of a transcript's segment, else None.
    """

    audio_id: str
    title: str
    field: str
    snippet: str
    speaker: str | None = None
    start_s: float | None = None
    end_s: float | None = None


@dataclass(frozen=True, slots=True)
class SearchPage:
    """A hit for each recording. Even a page without hits may have a `next_cursor`: then go on."""

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
    """Find recordings that contain all words and "quoted phrases" of a query, in any letter case.

    By the time of recording, or else of import; `since` and `until` (excluded) limit it; UTC
    without an offset. Raises BadRequestError.
    """
    words = words_of(query)
    has_all = Q(*(Q(search_text__contains=word) for word in words))
    hits: list[SearchHit] = []
    end = time.monotonic() + DEADLINE_S
    while True:
        rows = reading.newest(account, since=since, until=until, cursor=cursor)
        found = ExpressionWrapper(has_all, output_field=BooleanField())
        columns = rows.annotate(found=found).values_list("time", "pk", "found")
        batch = list(columns[:AT_ONCE])
        for at, pk, is_found in batch:
            if len(hits) == limit:
                return SearchPage(hits, cursor)
            cursor = reading.cursor_after(at, pk)
            if is_found:
                hits += _hit(pk, words)
        if len(batch) < AT_ONCE:
            return SearchPage(hits, None)
        if time.monotonic() > end:
            return SearchPage(hits, cursor)


def words_of(query: str) -> list[str]:
    """Return the words and phrases of a query, folded, each once. Raises BadRequestError."""
    if len(query) > LONGEST or len(folded(query)) > 2 * LONGEST:
        raise BadRequestError(f"query is longer than {LONGEST} characters.")
    parts = (folded(match[1] or match[2] or "") for match in WORD.finditer(query))
    words = list(dict.fromkeys(filter(None, parts)))
    if not words:
        raise BadRequestError("query has no word to search for.")
    if len(words) > MOST_WORDS:
        raise BadRequestError(f"query has more than {MOST_WORDS} words or phrases.")
    return words


def folded(text: str) -> str:
    """Return a text as it is compared: in one letter case and width, with single spaces."""
    # PostgreSQL refuses NUL.
    text = unicodedata.normalize("NFKC", text.replace("\0", " ")).casefold()
    return " ".join(text.split())


def text_of(content: Mapping[str, Any]) -> str:
    """Return what a search reads of a recording whose summaries are Markdown."""
    return folded("\n".join(text for _, text, _ in _texts(content)))


def _hit(pk: int, words: Sequence[str]) -> Iterator[SearchHit]:
    """Yield the hit of a recording, or nothing if it was deleted meanwhile."""
    recording = Recording.objects.filter(pk=pk).first()
    if recording is None:
        return
    content = event_data.readable(recording)
    candidates = _texts(content)
    field, text, segment = max(
        candidates, key=lambda each: sum(word in folded(each[1]) for word in words)
    )
    yield SearchHit(
        audio_id=content["audio_id"],
        title=content.get("title", ""),
        field=field,
        snippet=snippet(text, words),
        speaker=segment.get("speaker"),
        start_s=segment.get("start"),
        end_s=segment.get("end"),
    )


def _texts(content: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield field, text and segment of all that can match; the whole transcript last."""
    yield "title", content.get("title", ""), {}
    for summary in content.get("summaries", []):
        yield "summary", summary["content"], {}
    transcript = content.get("transcript", {})
    for segment in transcript.get("segments", []):
        yield "transcript", segment["text"], segment
    yield "transcript", transcript.get("text", ""), {}


def snippet(text: str, words: Sequence[str]) -> str:
    """Return the part of a text around its first match, in one line."""
    text = " ".join(text.split())
    places = (text.lower().find(word) for word in words)
    start = max(min((at for at in places if at >= 0), default=0) - BEFORE, 0)
    if start:  # not within a word
        start = text.find(" ", start) + 1
    part = text[start : start + LENGTH]
    return f"{'… ' if start else ''}{part}{' …' if start + LENGTH < len(text) else ''}"
