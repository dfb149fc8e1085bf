"""A thread pool that runs synchronous functions for event loops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from django.db import close_old_connections, connections

T = TypeVar("T")
# Runs a function in another thread and awaits its result.
InThread = Callable[[Callable[[], Any]], Awaitable[Any]]


class ThreadPool:
    """A fixed number of threads.

    Takes half the time of loop.run_in_executor(), which synchronises two futures per call; here
    one call into the loop settles one future. Unlike the threads of concurrent.futures, these
    still run in functions that atexit calls.
    """

    def __init__(self, count: int, *, name: str) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # Daemons: a function that hangs does not keep the process alive.
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function in one of the threads; return or raise what it does."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put(partial(_run, function, loop, future))
        return await future

    async def run_with_connection(self, function: Callable[[], T]) -> T:
        """Run a function that uses the database: its connection is neither too old nor broken."""
        return await self.run(partial(_with_connection, function))

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # an idle thread keeps no object alive
        connections.close_all()  # a connection belongs to its thread

    def close(self, *, wait_s: float = 0.0) -> None:
        """End the threads after the queued jobs; wait at most `wait_s` for each."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(wait_s)


def _with_connection(function: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return function()
    finally:
        close_old_connections()


def _run(
    function: Callable[[], T],
    loop: asyncio.AbstractEventLoop,
    future: asyncio.Future[T],
) -> None:
    try:
        settle = partial(_settle, future.set_result, future, function())
    except BaseException as error:  # the loop handles it
        settle = partial(_settle, future.set_exception, future, error)
    with suppress(RuntimeError):  # the loop is closed: no task awaits the result
        loop.call_soon_threadsafe(settle)


def _settle(
    settle: Callable[[Any], None], future: asyncio.Future[T], value: Any
) -> None:
    if not future.cancelled():
        settle(value)
