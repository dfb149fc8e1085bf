"""Work on large bodies in a thread, so that other requests need not wait for its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from typing import TypeVar

from webhooks_core.web.thread_pool import ThreadPool

T = TypeVar("T")

# Up to this size a switch of threads costs more than the work.
LARGE_BYTES = 256 * 1024
THREADS = 2


class LargeWork:
    """The threads of this process, started by the first large body and so after every fork."""

    def __init__(self) -> None:
        self._pool: ThreadPool | None = None
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._pool = None

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function; a cancellation waits for its end, and skips it before its begin.

        So whatever counts the body's bytes until the request ends counts them long enough.
        """
        if self._pool is None:
            self._pool = ThreadPool(THREADS, name="chat-large")
        is_wanted = True
        work = asyncio.ensure_future(
            self._pool.run(lambda: function() if is_wanted else None)
        )
        try:
            result = await asyncio.shield(work)
        except asyncio.CancelledError:
            is_wanted = False
            await asyncio.gather(work, return_exceptions=True)
            raise
        return result  # type: ignore[return-value] # it is wanted


_WORK = LargeWork()


async def run(function: Callable[[], T], *, size: int) -> T:
    """Return what a function does with so many bytes."""
    return function() if size <= LARGE_BYTES else await _WORK.run(function)


def size_of(payloads: Iterable[bytes]) -> int:
    return sum(map(len, payloads))
