"""Attempts of the last 24 hours, for operators: one bar for each hour."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from webhooks_core.models import Attempt
from webhooks_core.network.errors import Outcome

HOURS = 24
# Of a busier instance, the chart shows the latest ones alone.
MAX_ATTEMPTS = 50_000
BAR_WIDTH, HEIGHT = 5, 24


def last_day(now: datetime) -> dict[str, Any]:
    """Return the chart of all endpoints: one query of MAX_ATTEMPTS rows at most.

    Each bar has the failed attempts of an hour stacked on the successful ones, the oldest first.
    `is_cut` means that older attempts of the day are left out.
    """
    newest = Attempt.objects.order_by("-pk").values_list("started_at", "outcome")
    rows = list(newest[:MAX_ATTEMPTS])
    start = now.replace(minute=0, second=0, microsecond=0)
    start -= timedelta(hours=HOURS - 1)
    counts = Counter(
        ((at - start) // timedelta(hours=1), outcome == Outcome.OK)
        for at, outcome in rows
        if at >= start
    )
    hours = [(counts[hour, True], counts[hour, False]) for hour in range(HOURS)]
    most = max(map(sum, hours))
    ok, failed = map(sum, zip(*hours, strict=True))
    return {
        "bars": [
            _bar(hour, start + timedelta(hours=hour), *hours[hour], most)
            for hour in range(HOURS)
        ],
        "width": BAR_WIDTH * HOURS,
        "ok": ok,
        "failed": failed,
        "title": f"{ok:,} successful and {failed:,} failed attempts in 24 hours",
        "is_cut": len(rows) == MAX_ATTEMPTS and rows[-1][0] >= start,
    }


def _bar(hour: int, at: datetime, ok: int, failed: int, most: int) -> dict[str, Any]:
    failed_height = _height(failed, most)
    ok_height = min(_height(ok, most), HEIGHT - failed_height)
    return {
        "x": hour * BAR_WIDTH,
        "ok_y": HEIGHT - ok_height,
        "ok_height": ok_height,
        "failed_y": HEIGHT - ok_height - failed_height,
        "failed_height": failed_height,
        "title": f"{at:%H:%M} UTC: {ok:,} successful, {failed:,} failed",
    }


def _height(count: int, most: int) -> int:
    """Return a height at which even one attempt among many is visible."""
    return max(round(HEIGHT * count / most), 2) if count else 0
