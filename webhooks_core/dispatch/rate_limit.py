"""How many attempts a queue may still claim within a second. Pure: time is a parameter."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

SECOND = timedelta(seconds=1)
# A request that has waited longer in the sender is released: its endpoint may have changed.
STALE_AFTER_S = 1.0


class RateWindow:
    """The claims of the last second: at most `rate` within any second.

    After the clock is set back, claims that lie in the future count from now on.
    """

    __slots__ = ("_recent",)

    def __init__(self) -> None:
        self._recent: deque[tuple[datetime, int]] = deque()

    def add(self, count: int, at: datetime) -> None:
        self._recent.append((at, count))

    def remaining(self, rate: int, now: datetime) -> int:
        """Return how many more may be claimed now."""
        self._forget(now)
        return max(rate - sum(count for _, count in self._recent), 0)

    def next_free_at(self, now: datetime) -> datetime | None:
        """Return when the oldest claims no longer count; None if no claims count."""
        self._forget(now)
        return self._recent[0][0] + SECOND if self._recent else None

    def empty_at(self, now: datetime) -> datetime | None:
        """Return when no claim counts any longer; None if none counts now."""
        self._forget(now)
        return self._recent[-1][0] + SECOND if self._recent else None

    def _forget(self, now: datetime) -> None:
        while self._recent and self._recent[0][0] + SECOND <= now:
            self._recent.popleft()
        if self._recent and self._recent[-1][0] > now:
            total = sum(count for _, count in self._recent)
            self._recent = deque([(now, total)])


def is_too_early(not_before: datetime | None, now: datetime) -> bool:
    """Return True if nothing may be claimed yet.

    The engine never sets a time more than a second ahead: one further ahead was written before
    the clock was set back.
    """
    return not_before is not None and now < not_before <= now + SECOND
