"""The upstream of the benchmark: one process, as little work per request as Python allows.

Run as `python -m benchmarks.chat.mock PORT`. A request with `"stream":true` gets 50 chunks,
each a write of its own; one whose body says `slow` gets 16, one every 500 ms.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any, cast

import httptools

CHUNKS = 50
SLOW_CHUNK_S = 0.5
HEAD: dict[str, Any] = {
    "id": "chatcmpl-bench-0123456789",
    "created": 1_700_000_000,
    "model": "bench-upstream",
    "system_fingerprint": "fp_44709d6fcb",
}
USAGE = {"prompt_tokens": 19, "completion_tokens": 50, "total_tokens": 69}
TEXT = "The harbour master writes the names of all ships into a book. " * 4


def _completion() -> dict[str, Any]:
    message = {"role": "assistant", "content": TEXT, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {**HEAD, "object": "chat.completion", "choices": [choice], "usage": USAGE}


def _answer(value: dict[str, Any]) -> bytes:
    body = json.dumps(value).encode()
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body)
    ) + body


def _event(delta: dict[str, str], reason: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    choices = [] if more else [choice]
    value = {**HEAD, "object": "chat.completion.chunk", "choices": choices, **more}
    return _framed(json.dumps(value, separators=(",", ":")).encode())


def _framed(data: bytes) -> bytes:
    event = b"data: " + data + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(event), event)


ANSWER = _answer(_completion())
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
EVENTS = [
    *(_event({"content": f" word{number:02}"}) for number in range(CHUNKS - 1)),
    _event({}, "stop"),
]
SLOW = [*EVENTS[:15], EVENTS[-1]]
LAST = _event({}, usage=USAGE) + _framed(b"[DONE]") + b"0\r\n\r\n"


class Connection(asyncio.Protocol):
    """One client; answers each request when all of it is there."""

    def __init__(self) -> None:
        self._body = b""
        self._stream: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        body, self._body = self._body, b""
        if b'"stream":true' in body.replace(b'"stream": true', b'"stream":true'):
            is_slow = b"slow" in body
            pace = SLOW_CHUNK_S if is_slow else 0.0
            sending = self._send(pace, SLOW if is_slow else EVENTS)
            self._stream = asyncio.ensure_future(sending)
        else:
            self._transport.write(ANSWER)

    async def _send(self, pace: float, events: Sequence[bytes]) -> None:
        self._transport.write(STREAM_HEAD)
        for event in events:
            self._transport.write(event)
            await asyncio.sleep(pace)
        self._transport.write(LAST)

    def connection_lost(self, _: Exception | None) -> None:
        if self._stream is not None:
            self._stream.cancel()


async def serve(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", port, backlog=2048)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(serve(int(sys.argv[1])))
