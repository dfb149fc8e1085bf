"""An upstream that says hello."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import orjson

from gateway.chat.core.errors import UnsupportedRequestError
from gateway.chat.upstreams.base import Job


class Hello:
    """Takes the HTTP client, as every kind does, and calls nobody."""

    def __init__(self, client: object) -> None:
        self._client = client

    async def complete(self, job: Job) -> bytes:
        message = {"role": "assistant", "content": "Hello"}
        return _choice(job, message=message, finish_reason="stop")

    async def stream(self, job: Job) -> AsyncGenerator[list[bytes]]:
        yield [_choice(job, delta={"content": "Hello"}, finish_reason=None)]
        yield [_choice(job, delta={}, finish_reason="stop"), b"[DONE]"]

    async def embed(self, job: Job) -> bytes:
        raise UnsupportedRequestError("embeddings")


def _choice(job: Job, **choice: Any) -> bytes:
    return orjson.dumps({"id": job.request_id, "choices": [{"index": 0, **choice}]})
