"""Deadlines of many tasks at once, kept by one timer."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Self

TICK_S = 0.05
NEVER = float("inf")


class Deadlines:
    """Hands out deadlines for the tasks of one event loop.

    `asyncio.timeout` makes and cancels a timer for each, which cost a fifth of an attempt.
    A deadline from here ends its task at most TICK_S late.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._open: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_ticking(self) -> bool:
        return self._timer is not None

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
        for deadline in [it for it in self._open if it.until <= now]:
            self._open.discard(deadline)
            deadline.expire()
        # The timer goes on for as long as anything is open, and ends by itself.
        self._timer = self.loop.call_later(TICK_S, self._tick) if self._open else None


class Ending:
    """A block that `expire()` ends: it cancels the task in it, and TimeoutError is raised there.

    A cancellation that came from elsewhere goes on as one.
    """

    __slots__ = ("_cancelling", "_expired", "_task")

    _task: asyncio.Task[object]

    def __init__(self) -> None:
        self._expired = False

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline is entered inside a task")
        self._task, self._cancelling = task, task.cancelling()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._expired or self._task.uncancel() > self._cancelling:
            return
        if kind is not None and issubclass(kind, asyncio.CancelledError):
            raise TimeoutError from error

    def expire(self) -> None:
        self._expired = True
        self._task.cancel()


class Deadline(Ending):
    """A block that ends at a time; made by Deadlines."""

    __slots__ = ("_deadlines", "until")

    def __init__(self, deadlines: Deadlines, until: float) -> None:
        super().__init__()
        self._deadlines = deadlines
        self.until = until

    def __enter__(self) -> Self:
        super().__enter__()
        self._deadlines.enter(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._deadlines.leave(self)
        super().__exit__(kind, error, trace)


class _Thread(threading.local):
    """A thread runs one loop at a time."""

    deadlines: Deadlines | None = None


_thread = _Thread()


def within(seconds: float | None) -> Deadline:
    """Return a deadline for a block in the running loop, so many seconds from now or never."""
    loop = asyncio.get_running_loop()
    deadlines = _thread.deadlines
    if deadlines is None or deadlines.loop is not loop:
        deadlines = _thread.deadlines = Deadlines(loop)
    return deadlines.within(NEVER if seconds is None else seconds)
