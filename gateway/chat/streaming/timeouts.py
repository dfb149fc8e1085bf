"""One deadline for a whole stream, which moves with each part and ends with the total time."""

from __future__ import annotations

import asyncio

from webhooks_core.network.deadlines import NEVER, Deadline, of_running_loop


class StreamTimeout(Deadline):
    """Ends a block with TimeoutError when a part does not come in time.

    A time-out around every read would cost more than the read. Each part may be read by
    another task.
    """

    __slots__ = ("_end", "_loop")

    def __init__(self, total_s: float | None, *, elapsed_s: float = 0.0) -> None:
        super().__init__(of_running_loop(), NEVER)
        self._loop = asyncio.get_running_loop()
        self._end = (
            NEVER if total_s is None else self._loop.time() + total_s - elapsed_s
        )

    def start(self, seconds: float) -> None:
        """Expect a part of this task within so many seconds, and within the total time."""
        if task := asyncio.current_task():
            self._task = task
        self.until = min(self._loop.time() + seconds, self._end)

    def stop(self) -> None:
        """Expect nothing until the next start()."""
        self.until = NEVER
