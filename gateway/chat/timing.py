"""The time of a stream: one deadline that moves with each part."""

from __future__ import annotations

import asyncio

from webhooks_core.network.deadlines import NEVER, Deadline, of_running_loop


class StreamTimeout(Deadline):
    """Ends a block with TimeoutError when a part does not come in time.

    A time-out around every read would cost more than the read. Each part may be read by
    another task.
    """

    __slots__ = ("_end", "_loop")

    def __init__(self, total_s: float | None, *, elapsed_s: float) -> None:
        super().__init__(of_running_loop(), NEVER)
        self._loop = self._deadlines.loop
        left = NEVER if total_s is None else total_s - elapsed_s
        self._end = self._loop.time() + left

    def start(self, seconds: float) -> None:
        """Expect a part of this task within so many seconds, and within the total time."""
        # Without the loop it would ask the system for the process id every time.
        if task := asyncio.current_task(self._loop):
            self._task = task
        self.until = min(self._loop.time() + seconds, self._end)

    def stop(self) -> None:
        """Expect nothing until the next start()."""
        self.until = NEVER
