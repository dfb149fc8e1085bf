"""Attempts of the last 24 hours, for operators: one bar for each hour."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from webhooks_core.models import Attempt
from webhooks_core.network.errors import Outcome

HOURS = 24
# Of a busier instance, the chart shows the latest ones alone.
MAX_ATTEMPTS = 50_000
BAR_WIDTH, HEIGHT = 5, 24


class Bar(NamedTuple):
    """One hour: failed attempts stacked on successful ones, in units of the drawing."""

    x: int
    ok_y: int
    ok_height: int
    failed_y: int
    failed_height: int
    title: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The bars, oldest first; `is_cut` means that older attempts of the day are left out."""

    bars: list[Bar]
    ok: int
    failed: int
    is_cut: bool

    @property
    def width(self) -> int:
        return BAR_WIDTH * HOURS

    @property
    def title(self) -> str:
        return f"{self.ok:,} successful and {self.failed:,} failed attempts in 24 hours"


def last_day(now: datetime) -> Chart:
    """Return the chart of all endpoints: one query of MAX_ATTEMPTS rows at most."""
    rows = list(
        Attempt.objects.order_by("-pk").values_list("started_at", "outcome")[
            :MAX_ATTEMPTS
        ]
    )
    start = now.replace(minute=0, second=0, microsecond=0)
    start -= timedelta(hours=HOURS - 1)
    counts = Counter(
        ((at - start) // timedelta(hours=1), outcome == Outcome.OK)
        for at, outcome in rows
        if at >= start
    )
    hours = [(counts[hour, True], counts[hour, False]) for hour in range(HOURS)]
    most = max(map(sum, hours))
    bars = [
        _bar(hour, start + timedelta(hours=hour), *hours[hour], most)
        for hour in range(HOURS)
    ]
    is_cut = len(rows) == MAX_ATTEMPTS and rows[-1][0] >= start
    return Chart(bars, sum(ok for ok, _ in hours), sum(no for _, no in hours), is_cut)


def _bar(hour: int, at: datetime, ok: int, failed: int, most: int) -> Bar:
    failed_height = _height(failed, most)
    ok_height = min(_height(ok, most), HEIGHT - failed_height)
    top = HEIGHT - ok_height
    title = f"{at:%H:%M} UTC: {ok:,} successful, {failed:,} failed"
    x = hour * BAR_WIDTH
    return Bar(x, top, ok_height, top - failed_height, failed_height, title)


def _height(count: int, most: int) -> int:
    """Return a height at which even one attempt among many is visible."""
    return max(round(HEIGHT * count / most), 2) if count else 0
