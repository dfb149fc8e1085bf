"""The clients of the benchmark: kept connections that repeat a request once it is answered."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import httptools

from benchmarks.machine import Program, memory_of

WARM_UP_S = 0.5
CHAT = "/v1/chat/completions"
KEY = f"sk-{secrets.token_hex(32)}"  # of the gateways that need one
BEARER = {"Authorization": f"Bearer {KEY}"}


@dataclass(frozen=True, slots=True)
class Server:
    """A server under load. The CPU and memory of its `program` count."""

    name: str
    port: int
    path: str
    headers: Mapping[str, str]
    program: Program
    model: str = "bench"
    streams: bool = True

    def request(self, *, stream: bool, slow: bool = False) -> bytes:
        text = "slow" if slow else "Which ships are in the harbour?"
        body = (
            f'{{"model": "{self.model}", "stream": {str(stream).lower()}, '
            f'"messages": [{{"role": "user", "content": "{text}"}}]}}'
        ).encode()
        lines = [f"POST {self.path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


@dataclass(slots=True)
class Taken:
    """What one load measured; times in seconds."""

    latencies: list[float] = field(default_factory=list)
    failures: int = 0
    seconds: float = 0.0
    cpu: float = 0.0

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds if self.seconds else 0.0


class Client(asyncio.Protocol):
    """One connection: sends a request, measures, and repeats until it is stopped."""

    def __init__(self, request: bytes, taken: Taken, *, once: bool = False) -> None:
        self._request, self._taken, self._once = request, taken, once
        self._asked = 0.0
        self._stopping = False
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._ask()

    def _ask(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._asked = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        now = time.perf_counter()
        if self._parser.get_status_code() == 200:
            self._taken.latencies.append(now - self._asked)
        else:
            self._taken.failures += 1
        if self._once or self._stopping:
            self._end()
        else:
            self._ask()

    def connection_lost(self, _: Exception | None) -> None:
        if not self.done.done():
            self._taken.failures += 1
            self._end()

    def stop(self) -> None:
        self._stopping = True

    def _end(self) -> None:
        if not self.done.done():
            self.done.set_result(None)
        self._transport.close()


async def _clients(
    server: Server, count: int, request: bytes, taken: Taken, *, once: bool = False
) -> list[Client]:
    loop = asyncio.get_running_loop()
    connected = []
    for _ in range(count):
        _, client = await loop.create_connection(
            lambda: Client(request, taken, once=once), "127.0.0.1", server.port
        )
        connected.append(client)
    return connected


async def load(server: Server, *, clients: int, seconds: float, stream: bool) -> Taken:
    """Return what so many clients at once measure in so many seconds, after a warm-up."""
    taken = Taken()
    connected = await _clients(server, clients, server.request(stream=stream), taken)
    await asyncio.sleep(WARM_UP_S)
    taken.latencies.clear()
    started = time.perf_counter()
    await asyncio.sleep(seconds)
    taken.seconds = time.perf_counter() - started
    counted = Taken([*taken.latencies], seconds=taken.seconds)
    for client in connected:
        client.stop()
    await asyncio.wait([client.done for client in connected], timeout=30)
    counted.failures = taken.failures
    return counted


async def hold(server: Server, count: int) -> tuple[Taken, Taken, Taken, int]:
    """Open slow streams and send requests beside them.

    Returns what requests took before and meanwhile, what the streams took, and the memory
    in bytes while all were open.
    """
    idle = await load(server, clients=1, seconds=2.0, stream=False)
    streams = Taken()
    slow = server.request(stream=True, slow=True)
    connected = await _clients(server, count, slow, streams, once=True)
    await asyncio.sleep(1.0)
    busy = await load(server, clients=1, seconds=2.0, stream=False)
    memory = memory_of(server.program.pids())
    await asyncio.wait([client.done for client in connected], timeout=60)
    return idle, busy, streams, memory
