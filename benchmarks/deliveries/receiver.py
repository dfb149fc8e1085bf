"""The receiver of the benchmark: one process that does as little per request as Python allows.

Run as `python -m benchmarks.deliveries.receiver`; it prints its port. `/ok` answers 204 at once,
`/after/MS` so many milliseconds later. `/timed` notes when the first byte of each event came,
`/seen/MS/N` counts the events by id and N. `GET /stats` tells all, `GET /counts` only what needs no
time, `GET /reset` tells all and forgets it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from typing import Any, cast

import uvloop

DONE = b"HTTP/1.1 204 No Content\r\n\r\n"


class Notes:
    """What has arrived since the last reset; times are of the monotonic clock."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.answered: Counter[str] = Counter()
        self.last: dict[str, float] = {}
        self.began: dict[str, float] = {}
        self.seen: Counter[str] = Counter()

    def stats(self) -> dict[str, Any]:
        return vars(self)

    def counts(self) -> dict[str, Any]:
        return {"answered": self.answered, "last": self.last}


notes = Notes()


class Connection(asyncio.Protocol):
    """One client; answers each request when all of it is there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._head = self._body = b""
        self._missing = 0
        self._began = 0.0

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._take(data)
            return
        if not self._head:
            self._began = time.monotonic()
        self._head += data
        head, end, rest = self._head.partition(b"\r\n\r\n")
        if end:
            self._head = b""
            self._begin(head)
            self._take(rest)

    def _begin(self, head: bytes) -> None:
        method, path, _ = head.split(b" ", 2)
        self._kind, _, rest = path[1:].decode().partition("/")
        self._wait, _, self._place = rest.partition("/")
        if method == b"GET":
            self._tell()
            return
        start = head.lower().index(b"\r\ncontent-length: ") + 18  # Node writes it so
        end = head.find(b"\r\n", start)
        self._missing = int(head[start : end if end > 0 else len(head)])

    def _take(self, data: bytes) -> None:
        if not self._missing:
            return
        if self._kind in {"timed", "seen"}:
            self._body += data
        self._missing -= len(data)
        if not self._missing:
            self._finish()

    def _finish(self) -> None:
        if self._body:
            self._note(json.loads(self._body)["id"])
            self._body = b""
        if self._wait:
            loop = asyncio.get_running_loop()
            loop.call_later(int(self._wait) / 1000, self._answer, self._kind)
        else:
            self._answer(self._kind)

    def _note(self, event: str) -> None:
        if self._kind == "timed":
            notes.began.setdefault(event, self._began)
        else:
            notes.seen[f"{event} {self._place}"] += 1

    def _answer(self, kind: str) -> None:
        self._transport.write(DONE)
        notes.answered[kind] += 1
        notes.last[kind] = time.monotonic()

    def _tell(self) -> None:
        figures = notes.counts() if self._kind == "counts" else notes.stats()
        body = json.dumps(figures).encode()
        if self._kind == "reset":
            notes.forget()
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=2048)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
