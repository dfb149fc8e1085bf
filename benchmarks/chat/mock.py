"""The upstream of the benchmark: one process, as little work per request as Python allows.

Run as `python -m benchmarks.chat.mock PORT`. A request with `"stream":true` gets 50 chunks,
each a write of its own; one whose body says `slow` gets 16, one every 500 ms. It speaks
OpenAI's shapes, and at /v1/messages Anthropic's.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

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


def _message(*blocks: dict[str, str], reason: str | None = None) -> dict[str, Any]:
    return {
        "id": "msg_bench",
        "type": "message",
        "role": "assistant",
        "model": "bench-upstream",
        "content": blocks,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 19, "output_tokens": 50 if reason else 1},
    }


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


def _named(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields}, separators=(",", ":")).encode()
    return _framed(data, b"event: " + kind.encode() + b"\n")


def _word(number: int) -> bytes:
    delta = {"type": "text_delta", "text": f" word{number:02}"}
    return _named("content_block_delta", index=0, delta=delta)


def _framed(data: bytes, name: bytes = b"") -> bytes:
    event = name + b"data: " + data + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(event), event)


def _response(status: str, *output: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 19, "output_tokens": 50, "total_tokens": 69}
    return {
        "id": "resp_bench",
        "object": "response",
        "created_at": HEAD["created"],
        "status": status,
        "model": "bench-upstream",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "usage": usage if output else None,
    }


def _item(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "id": "msg_bench",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def _output_word(number: int) -> bytes:
    return _named(
        "response.output_text.delta",
        sequence_number=number + 2,
        item_id="msg_bench",
        output_index=0,
        content_index=0,
        delta=f" word{number:02}",
    )


ANSWER = _answer(_completion())
RESPONSE = _answer(_response("completed", _item(TEXT)))
MESSAGE = _answer(_message({"type": "text", "text": TEXT}, reason="end_turn"))
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
# As many writes in Anthropic's shape.
NAMED = [
    _named("message_start", message=_message())
    + _named(
        "content_block_start", index=0, content_block={"type": "text", "text": ""}
    ),
    *(_word(number) for number in range(CHUNKS - 1)),
]
SLOW_NAMED = NAMED[:16]
RESPONSE_EVENTS = [
    _named("response.created", sequence_number=0, response=_response("in_progress"))
    + _named(
        "response.output_item.added",
        sequence_number=1,
        output_index=0,
        item={**_item(""), "status": "in_progress", "content": []},
    ),
    *(_output_word(number) for number in range(CHUNKS - 1)),
]
LAST_OF_RESPONSE = (
    _named(
        "response.output_item.done",
        sequence_number=51,
        output_index=0,
        item=_item(TEXT),
    )
    + _named(
        "response.completed",
        sequence_number=52,
        response=_response("completed", _item(TEXT)),
    )
    + b"0\r\n\r\n"
)
LAST_NAMED = (
    _named("content_block_stop", index=0)
    + _named(
        "message_delta",
        delta={"stop_reason": "end_turn", "stop_sequence": None},
        usage={"output_tokens": 50},
    )
    + _named("message_stop")
    + b"0\r\n\r\n"
)


class Shape(NamedTuple):
    """What the upstream answers at an address; streams as events of one write each."""

    answer: bytes
    events: Sequence[bytes]
    slow: Sequence[bytes]
    last: bytes


CHAT = Shape(ANSWER, EVENTS, SLOW, LAST)
# Signpost and its peers are asked at addresses that end so.
SHAPES = {
    b"messages": Shape(MESSAGE, NAMED, SLOW_NAMED, LAST_NAMED),
    b"responses": Shape(
        RESPONSE, RESPONSE_EVENTS, RESPONSE_EVENTS[:16], LAST_OF_RESPONSE
    ),
}


class Connection(asyncio.Protocol):
    """One client; answers each request when all of it is there."""

    def __init__(self) -> None:
        self._body = b""
        self._shape = CHAT
        self._stream: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._shape = SHAPES.get(url.partition(b"?")[0].rpartition(b"/")[2], CHAT)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        body, self._body = self._body, b""
        if b'"stream":true' in body.replace(b'"stream": true', b'"stream":true'):
            is_slow = b"slow" in body
            pace = SLOW_CHUNK_S if is_slow else 0.0
            events = self._shape.slow if is_slow else self._shape.events
            sending = self._send(pace, events, self._shape.last)
            self._stream = asyncio.ensure_future(sending)
        else:
            self._transport.write(self._shape.answer)

    async def _send(self, pace: float, events: Sequence[bytes], last: bytes) -> None:
        self._transport.write(STREAM_HEAD)
        for event in events:
            self._transport.write(event)
            await asyncio.sleep(pace)
        self._transport.write(last)

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
