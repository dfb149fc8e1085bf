"""One timer for a whole stream: each part must come within a time, and all of it within another."""

from __future__ import annotations

import asyncio
from types import TracebackType

from webhooks_core.network.deadlines import NEVER, CancelScope


class StreamTimeout(CancelScope):
    """Ends a block with TimeoutError when what `expect()` announced does not come in time.

    Cheaper than a time-out around every read: the timer is moved only when it fires early.
    Expecting and resting cost nothing but an assignment.
    """

    def __init__(self, total_s: float | None, *, elapsed_s: float = 0.0) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._end = (
            NEVER if total_s is None else self._loop.time() + total_s - elapsed_s
        )
        self._due = NEVER
        self._timer: asyncio.TimerHandle | None = None

    def start(self, seconds: float) -> None:
        """Something must come within so many seconds, unless all of it ends before."""
        self._due = min(self._loop.time() + seconds, self._end)
        if self._timer is None or self._timer.when() > self._due:
            self._arm()

    def stop(self) -> None:
        """It came: what happens until the next expect() takes as long as it takes."""
        self._due = NEVER

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._due != NEVER:
            self._timer = self._loop.call_at(self._due, self._fire)

    def _fire(self) -> None:
        self._timer = None
        if self._loop.time() + 0.001 < self._due:
            self._arm()
        else:
            self.expire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().__exit__(kind, error, trace)
