"""Work on large bodies in a thread, so that other requests need not wait for its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TypeVar, TypeVarTuple

from webhooks_core.web.thread_pool import ThreadPool

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

# Up to this size a switch of threads costs more than the work.
LARGE_BYTES = 256 * 1024
THREADS = 2


@cache
def _pool() -> ThreadPool:
    """Return the threads of this process, started by the first large body."""
    return ThreadPool(THREADS, name="chat-large")


os.register_at_fork(after_in_child=_pool.cache_clear)


async def run(
    function: Callable[[*Arguments], T], *arguments: *Arguments, size: int
) -> T:
    """Return what a function does with arguments of so many bytes.

    A cancellation waits for its end, and skips it before its begin. So whatever counts the
    body's bytes until the request ends counts them long enough.
    """
    if size <= LARGE_BYTES:
        return function(*arguments)
    return await _run(partial(function, *arguments))


async def _run(function: Callable[[], T]) -> T:
    is_wanted = True
    work = asyncio.ensure_future(_pool().run(lambda: function() if is_wanted else None))
    try:
        result = await asyncio.shield(work)
    except asyncio.CancelledError:
        is_wanted = False
        await asyncio.gather(work, return_exceptions=True)
        raise
    return result  # type: ignore[return-value] # it is wanted


def size_of(payloads: Iterable[bytes]) -> int:
    return sum(map(len, payloads))
