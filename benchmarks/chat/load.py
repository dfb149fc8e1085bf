"""The clients of the benchmark: kept connections that repeat a request once it is answered."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from statistics import median
from typing import cast

import httptools

WARM_UP_S = 0.5


@dataclass(frozen=True, slots=True)
class Server:
    """A server under load. `pids` are the processes whose CPU and memory count."""

    name: str
    port: int
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    pids: tuple[int, ...] = ()
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
    first_bytes: list[float] = field(default_factory=list)
    events: int = 0
    failures: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    clients_cpu: float = 0.0  # of this process, in the same time

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds if self.seconds else 0.0

    def percentile(self, percent: float, *, first: bool = False) -> float:
        values = sorted(self.first_bytes if first else self.latencies)
        return (
            values[min(int(len(values) * percent / 100), len(values) - 1)]
            if values
            else 0.0
        )


class Client(asyncio.Protocol):
    """One connection: sends a request, measures, and repeats until it is stopped."""

    def __init__(self, request: bytes, taken: Taken, *, once: bool = False) -> None:
        self._request, self._taken, self._once = request, taken, once
        self._asked = self._first = 0.0
        self._stopping = False
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._ask()

    def _ask(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._first = 0.0
        self._asked = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        if not self._first:
            self._first = time.perf_counter()
        self._taken.events += body.count(b"data: {")

    def on_message_complete(self) -> None:
        now = time.perf_counter()
        if self._parser.get_status_code() == 200:
            self._taken.latencies.append(now - self._asked)
            self._taken.first_bytes.append(self._first - self._asked)
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
    taken.first_bytes.clear()
    taken.events, started = 0, time.perf_counter()
    cpu = time.process_time()
    await asyncio.sleep(seconds)
    taken.seconds = time.perf_counter() - started
    counted = Taken(
        list(taken.latencies), list(taken.first_bytes), taken.events, 0, taken.seconds
    )
    counted.clients_cpu = time.process_time() - cpu
    for client in connected:
        client.stop()
    await asyncio.wait([client.done for client in connected], timeout=30)
    counted.failures = taken.failures
    return counted


class Caller:
    """One kept connection that sends one request after another, and waits for each answer."""

    def __init__(self, server: Server) -> None:
        self._socket = socket.create_connection(("127.0.0.1", server.port), 60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = server.request(stream=False)
        self._is_done = False

    def call(self) -> float:
        """Return the seconds of one request."""
        parser, self._is_done = httptools.HttpResponseParser(self), False
        started = time.perf_counter()
        self._socket.sendall(self._request)
        while not self._is_done:
            parser.feed_data(self._socket.recv(65536))
        return time.perf_counter() - started

    def on_message_complete(self) -> None:
        self._is_done = True

    def close(self) -> None:
        self._socket.close()


def sequential(servers: Sequence[Server], times: int) -> dict[str, float]:
    """Return the median of one request at a time, in seconds; each server has every request in turn."""
    took: dict[str, list[float]] = {server.name: [] for server in servers}
    with ExitStack() as stack:
        callers = {
            server.name: stack.enter_context(closing(Caller(server)))
            for server in servers
        }
        for _ in range(times):
            for name, caller in callers.items():
                took[name].append(caller.call())
    return {
        name: median(seconds[len(seconds) // 10 :]) for name, seconds in took.items()
    }


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
    memory = sum(memory_of(pid) for pid in server.pids)
    await asyncio.wait([client.done for client in connected], timeout=60)
    return idle, busy, streams, memory


def memory_of(pid: int) -> int:
    """Return the resident bytes of a process."""
    with open(f"/proc/{pid}/statm") as file:  # noqa: PTH123 - a file of the kernel
        return int(file.read().split()[1]) * 4096


def cpu_of(pids: tuple[int, ...]) -> float:
    """Return the seconds of CPU that processes have used."""
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            fields = file.read().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / 100
