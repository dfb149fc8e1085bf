"""The attempts of a delivery, drawn to scale. No query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from webhooks_core.models import Attempt, Delivery
from webhooks_core.network.errors import Outcome
from webhooks_core.owners import wording
from webhooks_core.owners.state import in_words

WIDTH = 1000
NARROWEST = 6  # visible beside pauses of minutes


class Bar(NamedTuple):
    """An attempt in the drawing, in units of its width."""

    x: int
    width: int
    tone: str
    title: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """`next_x` is where the next attempt is due, None if there is none."""

    bars: Sequence[Bar]
    next_x: int | None
    marks: Sequence[str]
    description: str


def timeline(delivery: Delivery, attempts: Sequence[Attempt]) -> Timeline | None:
    """Return the attempts to scale, from the creation to the last or the next one."""
    if not attempts:
        return None
    start, next_at = delivery.created_at, delivery.next_attempt_at
    ends = [_end(attempt) for attempt in attempts]
    end = max([*ends, next_at] if next_at else ends)
    # At least a moment, so that one quick attempt does not fill the drawing.
    whole = max(end - start, timedelta(milliseconds=100))
    bars = [_bar(attempt, start, whole) for attempt in attempts]
    next_x = _x(next_at, start, whole) if next_at else None
    marks = [f"+{in_words(whole * part / 4)}" for part in range(5)]
    words = ", ".join(
        f"{wording.result(attempt)} after {in_words(attempt.started_at - start)}"
        for attempt in attempts
    )
    return Timeline(bars, next_x, marks, f"Attempts since the creation: {words}")


def _end(attempt: Attempt) -> datetime:
    return attempt.started_at + timedelta(milliseconds=attempt.duration_ms)


def _bar(attempt: Attempt, start: datetime, whole: timedelta) -> Bar:
    x, end = _x(attempt.started_at, start, whole), _x(_end(attempt), start, whole)
    width = max(end - x, NARROWEST)
    title = (
        f"Attempt {attempt.number}: {wording.result(attempt)}, {attempt.duration_ms} ms"
    )
    return Bar(
        min(x, WIDTH - width),
        width,
        "success" if attempt.outcome == Outcome.OK else "error",
        title,
    )


def _x(at: datetime, start: datetime, whole: timedelta) -> int:
    return max(0, min(WIDTH, round(WIDTH * ((at - start) / whole))))
