"""One timer for a whole stream: each part must come within a time, and all of it within another."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

NEVER = float("inf")


class Watch:
    """Ends a block with TimeoutError when what `expect()` announced does not come in time.

    Cheaper than a time-out around every read: the timer is moved only when it fires early.
    Expecting and resting cost nothing but an assignment.
    """

    def __init__(self, total_s: float | None, *, elapsed_s: float = 0.0) -> None:
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[object] | None = None
        self._end = (
            NEVER if total_s is None else self._loop.time() + total_s - elapsed_s
        )
        self._due = NEVER
        self._timer: asyncio.TimerHandle | None = None
        self._cancelling = 0
        self._has_fired = False

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task else 0
        return self

    def expect(self, seconds: float) -> None:
        """Something must come within so many seconds, unless all of it ends before."""
        self._due = min(self._loop.time() + seconds, self._end)
        if self._timer is None or self._timer.when() > self._due:
            self._arm()

    def rest(self) -> None:
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
        elif self._task is not None:
            self._has_fired = True
            self._task.cancel()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._has_fired or self._task is None:
            return
        # Somebody else may want the task to end as well: then it is not ours to stop.
        is_ours = self._task.uncancel() <= self._cancelling
        if is_ours and kind is asyncio.CancelledError:
            raise TimeoutError from error
