"""What the chat service needs while an event loop runs: connections, threads, the writer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakKeyDictionary

from django.conf import settings

from gateway import configuration
from gateway.chat.metering.background_writer import UsageWriter
from gateway.chat.metering.budgets import Budgets
from gateway.chat.metering.limits import Limits
from gateway.chat.model_registry import ModelRegistry
from gateway.chat.policy_hook import configured
from gateway.chat.service import Service
from gateway.chat.targets import Router, Targets
from gateway.chat.upstreams import http
from webhooks_core.network.client import HttpClient
from webhooks_core.web.thread_pool import ThreadPool

T = TypeVar("T")

READERS = 2
# A thread of its own: a slow write must not delay the lookup of a key.
WRITERS = 1
CLOSING_S = 10.0


@dataclass(frozen=True, slots=True)
class Runtime:
    """One service and its resources, started and stopped in the loop that it serves."""

    service: Service
    writer: UsageWriter
    client: HttpClient
    pools: tuple[ThreadPool, ...]

    @classmethod
    def start(cls) -> Runtime:
        readers = ThreadPool(READERS, name="chat-read")
        writers = ThreadPool(WRITERS, name="chat-write")
        in_reader, in_writer = readers.run_with_connection, writers.run_with_connection
        client, writer = http.client(), UsageWriter(in_writer)
        models, current = ModelRegistry(in_reader), configuration.current()
        budgets = Budgets(
            in_writer,
            models.known,
            settings.CHAT_RESERVED_TOKENS,
            budgets=current.budgets,
        )
        service = Service(
            targets=Targets(http.connect(client), Router(), budgets.reserve),
            registry=models,
            recorder=writer,
            limits=Limits(settings.CHAT_REQUESTS_AT_ONCE),
            budgets=budgets,
            in_thread=in_reader,
            request_log=current.request_log,
            policy=configured(),
        )
        writer.start()
        budgets.start()
        return cls(service, writer, client, (readers, writers))

    async def stop(self) -> None:
        """Write what is not written yet, and close everything."""
        await self.service.budgets.stop()
        await self.writer.stop()
        await self.client.close()
        for pool in self.pools:
            pool.close(wait_s=CLOSING_S)


_running: WeakKeyDictionary[asyncio.AbstractEventLoop, Runtime] = WeakKeyDictionary()


def current() -> Runtime:
    """Return the runtime of the running loop; the first call in a loop starts it."""
    loop = asyncio.get_running_loop()
    if (runtime := _running.get(loop)) is None:
        runtime = _running[loop] = Runtime.start()
    return runtime


async def stop() -> None:
    """Stop the runtime of the running loop, if there is one."""
    runtime = _running.pop(asyncio.get_running_loop(), None)
    if runtime is not None:
        await runtime.stop()
