"""An upstream without a server: repeats the last message, word by word, at a chosen pace."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import aiohttp
import orjson

from gateway.chat.core.answers import texts_of
from gateway.chat.errors import UnsupportedRequestError
from gateway.chat.sse import DONE
from gateway.chat.upstreams.base import Job
from gateway.json import objects

# The pace is part of the upstream's model name: `echo-200ms` waits 200 ms before each word.
PACE = re.compile(r"-([0-9]{1,5})ms\Z")
DEFAULT_PACE_S = 0.02
WORD = re.compile(r"\S+\s*|\s+")


class Echo:
    """Deterministic: the same request has the same response, whose tokens are its words."""

    def __init__(self, client: aiohttp.ClientSession | None = None) -> None:
        """Ignore the client: there is no server."""

    async def complete(self, job: Job) -> bytes:
        text = _last_text(job.request.body)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return orjson.dumps(
            {
                **_head(job, "chat.completion"),
                "choices": [choice],
                "usage": _usage(job, text),
            }
        )

    async def stream(self, job: Job) -> AsyncGenerator[list[bytes]]:
        text, pace = _last_text(job.request.body), _pace(job.target.model)
        head = _head(job, "chat.completion.chunk")
        for delta in _deltas(text):
            await asyncio.sleep(pace)
            yield [_chunk(head, delta, None)]
        yield [_chunk(head, {}, "stop")]
        usage = {**head, "choices": [], "usage": _usage(job, text)}
        yield [orjson.dumps(usage), DONE] if job.entry.stream_usage else [DONE]

    async def embed(self, job: Job) -> bytes:
        raise UnsupportedRequestError("embeddings")


def _chunk(head: dict[str, Any], delta: dict[str, str], reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return orjson.dumps({**head, "choices": [choice]})


def _deltas(text: str) -> Iterator[dict[str, str]]:
    yield {"role": "assistant", "content": ""}
    for word in WORD.findall(text):
        yield {"content": word}


def _head(job: Job, kind: str) -> dict[str, Any]:
    digest = zlib.crc32(job.request.for_upstream(job.target.model, ask_usage=False))
    return {
        "id": f"chatcmpl-echo-{digest:08x}",
        "object": kind,
        "created": 0,
        "model": job.target.model,
    }


def _usage(job: Job, text: str) -> dict[str, int]:
    prompt = sum(len(words.split()) for words in _texts(job.request.body))
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
