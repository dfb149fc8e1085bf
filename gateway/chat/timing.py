"""The time of a stream: one deadline that moves with each part, and comments in silence.

Comments keep proxies from ending a stream in which a model thinks for long.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from types import TracebackType

from django.conf import settings

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


def interval() -> float:
    """Return after how many seconds of silence a comment is sent."""
    return float(settings.CHAT_KEEPALIVE_S or NEVER)


class KeepAlive(Deadline):
    """A block in which `send_comment` is called after each interval of silence.

    One timer serves all streams of the loop, and a part costs no task.
    """

    __slots__ = ("_loop", "_seconds", "_send_comment", "_sending")

    def __init__(self, send_comment: Callable[[], Awaitable[None]]) -> None:
        super().__init__(of_running_loop(), NEVER)
        self._loop = asyncio.get_running_loop()
        self._seconds = interval()
        self._send_comment = send_comment
        self._sending: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Take the silence to begin now, after a part."""
        self.until = self._loop.time() + self._seconds

    def stop(self) -> None:
        """Send no comment until the next start(): a part is being sent."""
        self.until = NEVER

    def expire(self) -> None:
        self.start()
        self._deadlines.enter(self)
        # A client that does not read gets one comment, not one an interval.
        if self._sending is None or self._sending.done():
            self._sending = asyncio.ensure_future(self._send_comment())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        if self._sending is not None:
            self._sending.cancel()


async def with_comments(
    parts: AsyncGenerator[bytes], comment: bytes
) -> AsyncGenerator[bytes]:
    """Yield parts, and a comment after each interval of silence.

    For carriers that ask for one part after another. Each part costs a task. The caller
    closes this generator first, then `parts`.
    """
    seconds = interval()
    timeout = None if seconds == NEVER else seconds
    while True:
        reading = asyncio.ensure_future(anext(parts, None))
        try:
            while not (await asyncio.wait({reading}, timeout=timeout))[0]:
                yield comment
        finally:
            if not reading.done():
                reading.cancel()
                await asyncio.wait({reading})
        if (part := reading.result()) is None:
            return
        yield part
