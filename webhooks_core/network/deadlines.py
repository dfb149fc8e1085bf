"""Deadlines of many tasks, kept by one timer for each event loop."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Self

TICK_S = 0.05
NEVER = float("inf")


class Deadlines:
    """The open deadlines of one event loop.

    `asyncio.timeout` creates and cancels a timer for each block, a fifth of an attempt's cost. A
    deadline of this class ends its block at most TICK_S late.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._open: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None

    def within(self, seconds: float) -> Deadline:
        return Deadline(self, self.loop.time() + seconds)

    def enter(self, deadline: Deadline) -> None:
        self._open.add(deadline)
        if self._timer is None:
            self._timer = self.loop.call_later(TICK_S, self._tick)

    def leave(self, deadline: Deadline) -> None:
        self._open.discard(deadline)

    def _tick(self) -> None:
        now = self.loop.time()
        for deadline in [each for each in self._open if each.until <= now]:
            self._open.discard(deadline)
            deadline.expire()
        # Without an open deadline there is no timer.
        self._timer = self.loop.call_later(TICK_S, self._tick) if self._open else None


class Deadline:
    """A block that ends with TimeoutError at a time of the loop's clock, `until`.

    It cancels the block's task. Any other cancellation of the task remains a cancellation.
    """

    __slots__ = ("_cancelling", "_deadlines", "_expired", "_task", "until")

    _task: asyncio.Task[object]

    def __init__(self, deadlines: Deadlines, until: float) -> None:
        self._deadlines = deadlines
        self._expired = False
        self.until = until

    def __enter__(self) -> Self:
        # Without the loop it would ask the system for the process id every time.
        task = asyncio.current_task(self._deadlines.loop)
        if task is None:
            raise RuntimeError("a deadline is entered inside a task")
        self._task, self._cancelling = task, task.cancelling()
        self._deadlines.enter(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._deadlines.leave(self)
        if not self._expired or self._task.uncancel() > self._cancelling:
            return
        if kind is not None and issubclass(kind, asyncio.CancelledError):
            raise TimeoutError from error

    def end(self) -> None:
        """End the block now, as if its time was over."""
        self._deadlines.leave(self)
        self.expire()

    def expire(self) -> None:
        self._expired = True
        self._task.cancel()


# The deadlines of the loop that a thread runs: one at a time.
_thread = threading.local()


def of_running_loop() -> Deadlines:
    """Return the deadlines of the running loop."""
    loop = asyncio.get_running_loop()
    deadlines: Deadlines | None = getattr(_thread, "deadlines", None)
    if deadlines is None or deadlines.loop is not loop:
        deadlines = _thread.deadlines = Deadlines(loop)
    return deadlines


def within(seconds: float | None) -> Deadline:
    """Return a deadline in the running loop after some seconds; None means that it never ends."""
    return of_running_loop().within(NEVER if seconds is None else seconds)
