"""`events/poll`: the events behind a cursor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from django.utils import timezone

from recording.mcp.events.cursors import Position
from recording.mcp.events.occurrences import Subject, read_after

DEFAULT_EVENTS, MAX_EVENTS = 50, 100
# Of one answer, so that an answer with transcripts stays readable.
MAX_ANSWER_BYTES = 2 * 1024 * 1024
NEXT_POLL_MS = 30_000


class Page(NamedTuple):
    """Some occurrences, the position behind them, and whether events were skipped before them."""

    events: list[dict[str, Any]]
    position: Position
    has_more: bool = False
    truncated: bool = False
    ids: Sequence[int] = ()

    def with_positions(self) -> Iterator[tuple[dict[str, Any], Position]]:
        """Yield each occurrence with the position behind it."""
        for occurrence, pk in zip(self.events, self.ids, strict=True):
            at = datetime.fromisoformat(occurrence["timestamp"])
            yield occurrence, Position(self.position.account, pk, at)


def start(subject: Subject, *, now: datetime) -> Page:
    """Return the present position: nothing that was before it is delivered."""
    return Page([], Position(subject.account, subject.newest(), now))


def read_page(
    subject: Subject,
    position: Position,
    *,
    max_age_ms: int | None = None,
    max_events: int = DEFAULT_EVENTS,
    now: datetime,
) -> Page:
    """Return the next occurrences behind a position."""
    floor = position.floor(now, max_age_ms)
    window = read_after(subject, position.event, since=floor)
    events: list[dict[str, Any]] = []
    ids: list[int] = []
    seen, at, room = position.event, position.at, MAX_ANSWER_BYTES
    has_more = window.has_more
    for stored in window.events:
        if subject.matches(stored):
            occurrence = subject.occurrence(stored)
            room -= len(orjson.dumps(occurrence))
            if events and (room < 0 or len(events) == max_events):
                has_more = True
                break
            events.append(occurrence)
            ids.append(stored.pk)
        seen, at = stored.pk, max(at, stored.created_at)
    # What is behind the last event that was read may be removed before it is read.
    reached = Position(subject.account, seen, max(at, floor) if has_more else now)
    return Page(events, reached, has_more, position.at < floor, ids)


def poll(
    subject: Subject,
    cursor: str | None,
    *,
    max_age_ms: int | None = None,
    max_events: int | None = None,
) -> dict[str, Any]:
    """Return the result of `events/poll`. Raises InvalidParamsError for the cursor."""
    now = timezone.now()
    if cursor is None:
        page = start(subject, now=now)
    else:
        page = read_page(
            subject,
            Position.read(cursor, account=subject.account),
            max_age_ms=max_age_ms,
            max_events=min(max_events or DEFAULT_EVENTS, MAX_EVENTS),
            now=now,
        )
    return {
        "resultType": "complete",
        "events": page.events,
        "cursor": page.position.cursor(),
        "truncated": page.truncated,
        "hasMore": page.has_more,
        "nextPollMs": NEXT_POLL_MS,
    }
