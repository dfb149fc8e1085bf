"""The windows of budgets, by the calendar in UTC. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache


def start_of(window: str, at: datetime) -> datetime:
    """Return when the minute, hour, day, week (from Monday) or month of a time begins."""
    return _start_of(window, int(at.timestamp() // 60))


@lru_cache(maxsize=100)  # requests ask it several times in each minute
def _start_of(window: str, minute: int) -> datetime:
    at = datetime.fromtimestamp(minute * 60, UTC)
    if window == "minute":
        return at
    at = at.replace(minute=0)
    if window == "hour":
        return at
    at = at.replace(hour=0)
    if window == "week":
        return at - timedelta(days=at.weekday())
    return at.replace(day=1) if window == "month" else at


def next_start(window: str, at: datetime) -> datetime:
    """Return when the window of a time ends, and the next one begins."""
    return end_of(window, start_of(window, at))


def end_of(window: str, start: datetime) -> datetime:
    """Return when the window that begins at a time ends."""
    if window == "month":
        return start_of(window, start + timedelta(days=31))
    names = {"minute": "minutes", "hour": "hours", "day": "days", "week": "weeks"}
    return start + timedelta(**{names[window]: 1})
