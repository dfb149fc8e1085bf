"""How much one caller may ask for: requests per minute, and requests and streams at once."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gateway.errors import TooManyRequestsError
from gateway.identity import Caller

WINDOW_S = 60
RETRY_BUSY_S = 1
MAX_KNOWN = 100_000

# Counts a request in the window of this number and returns how many there were, this included.
Count = Callable[[str, int], Awaitable[int]]


def too_many(text: str, *, retry_after: int) -> TooManyRequestsError:
    return TooManyRequestsError(text, headers={"Retry-After": str(retry_after)})


@dataclass(slots=True)
class LocalCount:
    """Counts in this process alone."""

    _window: int = 0
    _counts: Counter[str] = field(default_factory=Counter)

    async def __call__(self, key: str, window: int) -> int:
        if window != self._window or len(self._counts) > MAX_KNOWN:
            self._window, self._counts = window, Counter()
        self._counts[key] += 1
        return self._counts[key]


@dataclass(slots=True)
class Limits:
    """What one key (or one principal, without a key) may do; 0 is without limit.

    Requests per minute are counted by `count`, which several processes may share; those
    that run at once, by each process for itself.
    """

    per_minute: int = 0
    at_once: int = 0
    count: Count = field(default_factory=LocalCount)
    clock: Callable[[], float] = time.time
    _running: Counter[str] = field(default_factory=Counter)

    async def admit(self, caller: Caller) -> None:
        """Count a request. Raises TooManyRequestsError."""
        if not self.per_minute:
            return
        window, elapsed = divmod(self.clock(), WINDOW_S)
        if await self.count(_key(caller), int(window)) > self.per_minute:
            raise too_many(
                f"At most {self.per_minute} requests per minute.",
                retry_after=max(1, math.ceil(WINDOW_S - elapsed)),
            )

    def enter(self, caller: Caller) -> None:
        """Take a place among those that run at once. Raises TooManyRequestsError."""
        key = _key(caller)
        if self.at_once and self._running[key] >= self.at_once:
            raise too_many(
                f"At most {self.at_once} requests at once.", retry_after=RETRY_BUSY_S
            )
        self._running[key] += 1

    def leave(self, caller: Caller) -> None:
        key = _key(caller)
        self._running[key] -= 1
        if self._running[key] <= 0:
            del self._running[key]

    @property
    def running(self) -> int:
        """How many requests run now."""
        return self._running.total()


def _key(caller: Caller) -> str:
    if caller.key_id is not None:
        return f"key:{caller.key_id}"
    return f"{caller.tenant}/{caller.principal}"
