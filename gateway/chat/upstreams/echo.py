"""An upstream without a server: repeats the last message, word by word, at a chosen pace."""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections.abc import AsyncGenerator
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
DEFAULT_PACE_MS = 20
WORD = re.compile(r"\S+\s*|\s+")


class Echo:
    """The same request has the same response but for its time; its tokens are its words.

    It answers in the shape of chat completions, which is translated for other clients.
    """

    def apis(self, entry: ModelEntry) -> frozenset[str]:
        return frozenset({"chat"})

    async def post(self, call: Call) -> bytes:
        text, usage = _answer(call)
        head = _head(call, "chat.completion")
        message = {"message": {"role": "assistant", "content": text}}
        return _json(head, {**message, "finish_reason": "stop"}, usage=usage)

    async def stream(self, call: Call) -> AsyncGenerator[list[bytes]]:
        text, usage = _answer(call)
        head = _head(call, "chat.completion.chunk")
        pace = PACE.search(call.context.target.model)
        first = {"role": "assistant", "content": ""}
        for delta in (first, *({"content": word} for word in WORD.findall(text))):
            await asyncio.sleep(int(pace[1] if pace else DEFAULT_PACE_MS) / 1000)
            yield [_json(head, {"delta": delta, "finish_reason": None})]
        yield [_json(head, {"delta": {}, "finish_reason": "stop"})]
        if call.context.endpoint.stream_usage:
            yield [orjson.dumps({**head, "choices": [], "usage": usage})]
        yield [DONE]


def _answer(call: Call) -> tuple[str, dict[str, int]]:
    """Return the last text of a request, and the usage."""
    if call.path == "embeddings":
        raise UnsupportedRequestError("embeddings")
    texts = [
        "".join(texts_of(message.get("content")))
        for message in objects(orjson.loads(call.body).get("messages"))
    ]
    text = texts[-1] if texts else ""
    prompt, completion = len(" ".join(texts).split()), len(text.split())
    tokens = {"prompt_tokens": prompt, "completion_tokens": completion}
    return text, {**tokens, "total_tokens": prompt + completion}


def _head(call: Call, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-echo-{zlib.crc32(call.body):08x}",
        "object": kind,
        "created": int(time.time()),
        "model": call.context.target.model,
    }


def _json(head: dict[str, Any], choice: dict[str, Any], **more: Any) -> bytes:
    return orjson.dumps({**head, "choices": [{"index": 0, **choice}], **more})
