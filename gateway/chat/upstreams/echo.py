"""An upstream without a server: repeats the last message, word by word, at a chosen pace."""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import orjson

from gateway.chat.apis.openai.reader import texts_of
from gateway.chat.errors import UnsupportedRequestError
from gateway.chat.sse import DONE
from gateway.chat.upstreams.base import Call
from gateway.configuration.shapes import ModelEntry
from gateway.json import objects

# The pace is part of the upstream's model name: `echo-200ms` waits 200 ms before each word.
PACE = re.compile(r"-([0-9]{1,5})ms\Z")
DEFAULT_PACE_S = 0.02
WORD = re.compile(r"\S+\s*|\s+")


class Echo:
    """The same request has the same response but for its time; its tokens are its words.

    It answers in the shape of chat completions, which is translated for other clients.
    """

    def apis(self, entry: ModelEntry) -> frozenset[str]:
        return frozenset({"chat"})

    async def post(self, call: Call) -> bytes:
        body = _body(call)
        text = _last_text(body)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        head = _head(call, "chat.completion")
        return orjson.dumps({**head, "choices": [choice], "usage": _usage(body, text)})

    async def stream(self, call: Call) -> AsyncGenerator[list[bytes]]:
        body, pace = _body(call), _pace(call.context.target.model)
        text, head = _last_text(body), _head(call, "chat.completion.chunk")
        for delta in _deltas(text):
            await asyncio.sleep(pace)
            yield [_chunk(head, delta, None)]
        yield [_chunk(head, {}, "stop")]
        usage = {**head, "choices": [], "usage": _usage(body, text)}
        yield (
            [orjson.dumps(usage), DONE]
            if call.context.endpoint.stream_usage
            else [DONE]
        )


def _body(call: Call) -> Any:
    if call.path == "embeddings":
        raise UnsupportedRequestError("embeddings")
    return orjson.loads(call.body)


def _chunk(head: dict[str, Any], delta: dict[str, str], reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return orjson.dumps({**head, "choices": [choice]})


def _deltas(text: str) -> Iterator[dict[str, str]]:
    yield {"role": "assistant", "content": ""}
    for word in WORD.findall(text):
        yield {"content": word}


def _head(call: Call, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-echo-{zlib.crc32(call.body):08x}",
        "object": kind,
        "created": int(time.time()),
        "model": call.context.target.model,
    }


def _usage(body: Any, text: str) -> dict[str, int]:
    prompt = sum(len(words.split()) for words in _texts(body))
    completion = len(text.split())
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _pace(model: str) -> float:
    match = PACE.search(model)
    return int(match[1]) / 1000 if match else DEFAULT_PACE_S


def _last_text(body: Any) -> str:
    return next(reversed(list(_texts(body))), "")


def _texts(body: Any) -> Iterator[str]:
    """Yield the text of each message of OpenAI's shape."""
    for message in objects(body.get("messages")):
        content = message.get("content")
        if isinstance(content, str | list):
            yield "".join(texts_of(content))
