"""How many attempts a lane may still claim within a second. Pure: time is a parameter."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

SECOND = timedelta(seconds=1)
# What has waited longer behind a slow receiver is given back: its endpoint may have changed.
STALE_AFTER_S = 1.0


class RateWindow:
    """What was claimed within the last second: at most `rate` within any second.

    A clock that is set back makes what seems to lie ahead of us count from now on.
    """

    __slots__ = ("_recent",)

    def __init__(self) -> None:
        self._recent: deque[tuple[datetime, int]] = deque()

    def note(self, count: int, at: datetime) -> None:
        """Remember that so many were claimed."""
        self._recent.append((at, count))

    def left(self, rate: int, now: datetime) -> int:
        """Return how many more may be claimed now."""
        self._forget(now)
        return max(rate - sum(count for _, count in self._recent), 0)

    def more_at(self, now: datetime) -> datetime | None:
        """Return when the oldest claims no longer count; None when none do."""
        self._forget(now)
        return self._recent[0][0] + SECOND if self._recent else None

    def free_at(self, now: datetime) -> datetime | None:
        """Return when none of the claims counts any longer; None when none does now."""
        self._forget(now)
        return self._recent[-1][0] + SECOND if self._recent else None

    def _forget(self, now: datetime) -> None:
        while self._recent and self._recent[0][0] + SECOND <= now:
            self._recent.popleft()
        if self._recent and self._recent[-1][0] > now:
            total = sum(count for _, count in self._recent)
            self._recent = deque([(now, total)])


def is_held(until: datetime | None, now: datetime) -> bool:
    """Tell whether a lane is held; a time further ahead than we ever set is not ours."""
    return until is not None and now < until <= now + SECOND
