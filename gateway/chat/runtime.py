"""What the chat service needs while an event loop runs: connections, threads, the writer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any
from weakref import WeakKeyDictionary

import aiohttp
from django.conf import settings
from django.db import close_old_connections, connections

from gateway.chat.fallback import FallbackCaller
from gateway.chat.metering.limits import Limits
from gateway.chat.metering.shared_counter import shared_count
from gateway.chat.metering.writer import UsageWriter
from gateway.chat.model_registry import ModelRegistry
from gateway.chat.routing import Router
from gateway.chat.service import Service
from gateway.chat.upstreams import http, registry

READERS = 2
# One, of its own: a slow write must not keep a key from being looked up.
WRITERS = 1
CLOSING_S = 10.0


@dataclass(frozen=True, slots=True)
class Runtime:
    """One service and what it runs on. Started and stopped in the loop that it serves."""

    service: Service
    writer: UsageWriter
    client: aiohttp.ClientSession
    threads: tuple[ThreadPoolExecutor, ...]

    @classmethod
    async def start(cls) -> Runtime:
        readers = ThreadPoolExecutor(READERS, thread_name_prefix="chat-read")
        writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="chat-write")
        client, writer = http.session(), UsageWriter(_runner(writers))
        in_thread = _runner(readers)
        service = Service(
            calls=FallbackCaller(registry.connect(client), Router()),
            catalogue=ModelRegistry(in_thread),
            recorder=writer,
            limits=Limits(
                per_minute=settings.CHAT_REQUESTS_PER_MINUTE,
                at_once=settings.CHAT_REQUESTS_AT_ONCE,
                count=shared_count(settings.REDIS_URL),
            ),
            in_thread=in_thread,
        )
        writer.start()
        return cls(service, writer, client, (readers, writers))

    async def stop(self) -> None:
        """Write what is not written yet and close everything."""
        await self.writer.stop()
        await self.client.close()
        for threads, count in zip(self.threads, (READERS, WRITERS), strict=True):
            await asyncio.to_thread(_close, threads, count)


def _runner(
    threads: ThreadPoolExecutor,
) -> Callable[[Callable[[], Any]], Awaitable[Any]]:
    async def run(function: Callable[[], Any]) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, _with_connection, function)

    return run


def _with_connection(function: Callable[[], Any]) -> Any:
    """Call a function with a database connection that is neither too old nor broken."""
    close_old_connections()
    try:
        return function()
    finally:
        close_old_connections()


def _close(threads: ThreadPoolExecutor, count: int) -> None:
    """End threads; connections belong to them, so that each must close its own."""
    barrier = Barrier(count)

    def close() -> None:
        barrier.wait(CLOSING_S)
        connections.close_all()

    for closing in [threads.submit(close) for _ in range(count)]:
        closing.result()
    threads.shutdown()


_running: WeakKeyDictionary[asyncio.AbstractEventLoop, Runtime] = WeakKeyDictionary()


async def start() -> Runtime:
    """Start the runtime of this loop, or return the one that runs."""
    loop = asyncio.get_running_loop()
    if loop not in _running:
        _running[loop] = await Runtime.start()
    return _running[loop]


async def stop() -> None:
    """Stop the runtime of this loop, if there is one."""
    runtime = _running.pop(asyncio.get_running_loop(), None)
    if runtime is not None:
        await runtime.stop()
