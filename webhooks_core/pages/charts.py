"""The attempts of an endpoint over the last day and week, drawn with axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from webhooks_core.models import AttemptHour, Endpoint

WIDTH, HEIGHT = 240, 60
HOUR = timedelta(hours=1)


class Bar(NamedTuple):
    """A span of time, in units of the drawing: failed attempts above successful ones."""

    x: float
    width: float
    ok_y: int
    ok_height: int
    failed_y: int
    failed_height: int
    title: str


@dataclass(frozen=True, slots=True)
class Chart:
    """`highest` is the number at the upper end; `marks` stand below, from the oldest to now."""

    title: str
    bars: Sequence[Bar]
    highest: int
    marks: Sequence[str]
    description: str


def charts(endpoint: Endpoint, now: datetime) -> list[Chart]:
    """Return the last day by the hour and the last week by six hours. One query."""
    end = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + HOUR
    since = end - 168 * HOUR
    rows = list(AttemptHour.objects.filter(endpoint=endpoint.pk, hour__gte=since))
    day = ("-24 h", "-18 h", "-12 h", "-6 h", "now")
    week = ("-7 d", "-5 d", "-3 d", "-1 d", "now")
    return [
        _chart("24 hours", rows, end, hours=1, count=24, marks=day),
        _chart("7 days", rows, end, hours=6, count=28, marks=week),
    ]


def _chart(
    title: str,
    rows: Iterable[AttemptHour],
    end: datetime,
    *,
    hours: int,
    count: int,
    marks: Sequence[str],
) -> Chart:
    ok, failed = [0] * count, [0] * count
    for row in rows:
        number = count - 1 - (end - HOUR - row.hour) // (hours * HOUR)
        if 0 <= number < count:
            ok[number] += row.ok
            failed[number] += row.failed
    highest = max(map(sum, zip(ok, failed, strict=True)))
    start = end - count * hours * HOUR
    times = [start + number * hours * HOUR for number in range(count)]
    spans = zip(times, ok, failed, strict=True)
    width = WIDTH / count
    bars = [
        _bar(number * width, width, at, ok_count, failed_count, highest)
        for number, (at, ok_count, failed_count) in enumerate(spans)
        if ok_count or failed_count
    ]
    words = f"{sum(ok):,} successful, {sum(failed):,} failed"
    return Chart(title, bars, highest, marks, words)


def _bar(
    x: float, width: float, at: datetime, ok: int, failed: int, highest: int
) -> Bar:
    failed_height = _height(failed, highest)
    ok_height = min(_height(ok, highest), HEIGHT - failed_height)
    top = HEIGHT - ok_height
    title = f"From {at:%a %H:%M} UTC: {ok:,} successful, {failed:,} failed"
    left = round(x + width * 0.1, 2)
    bar_width = round(width * 0.8, 2)
    return Bar(
        left, bar_width, top, ok_height, top - failed_height, failed_height, title
    )


def _height(count: int, highest: int) -> int:
    """Return a height at which even one attempt among many is visible."""
    return max(round(HEIGHT * count / highest), 2) if count else 0
