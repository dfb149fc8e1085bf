"""Chat and embeddings in OpenAI's shape, which every upstream speaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gateway import json
from gateway.chat.context import ChatContext
from gateway.chat.core import chunks, failures
from gateway.chat.errors import UpstreamServiceError
from gateway.chat.operations.base import Operation
from gateway.chat.streaming.opened import OpenedStream
from gateway.chat.streaming.transform import ChunkTransformer
from gateway.chat.tokens import text_length
from gateway.chat.upstreams.base import Job, Upstream
from gateway.json import objects


class ChatCompletions(Operation):
    """Completions, at once or as a stream."""

    action = "chat.completions"

    async def complete(
        self, upstream: Upstream, job: Job, context: ChatContext
    ) -> bytes:
        return await _renamed(context, await upstream.complete(job), "choices")

    async def open(
        self, upstream: Upstream, job: Job, context: ChatContext
    ) -> OpenedStream:
        transformer = ChunkTransformer(context.api_format, context.request)
        return OpenedStream(transformer, upstream.stream(job))


class Embeddings(Operation):
    """Embeddings of texts."""

    action = "embeddings"
    inference_type = "embedding"
    can_stream = False

    async def complete(
        self, upstream: Upstream, job: Job, context: ChatContext
    ) -> bytes:
        return await _renamed(context, await upstream.embed(job), "data")


CHAT, EMBEDDINGS = ChatCompletions(), Embeddings()


async def _renamed(context: ChatContext, body: bytes, list_key: str) -> bytes:
    return renamed(context, body, list_key)


def renamed(context: ChatContext, body: bytes, list_key: str) -> bytes:
    """Return a body that has a list under a key with the requested name of the model.

    Raises as checked() does.
    """
    value = checked(context, body, list_key)
    model = context.request.model
    if value.get("model", model) == model:
        return body
    return chunks.rename(body, model)


def checked(context: ChatContext, body: bytes, list_key: str) -> dict[str, Any]:
    """Return a body that has a list under a key, and note its usage.

    Raises UpstreamServiceError, InvalidValueError.
    """
    value = chunks.parse(body, json.MAX_VALUES_READ)
    if failures.replaces_answer(value, list_key):
        raise failures.failure_in(value)
    if not isinstance(value.get(list_key), list):
        raise UpstreamServiceError(f"the answer has no {list_key}")
    _note_usage(context, value)
    return value


def _note_usage(context: ChatContext, value: Mapping[str, Any]) -> None:
    """Note what an answer used; embeddings have no completion."""
    context.usage = usage = chunks.usage_in(value)
    if usage is None or not usage.completion_tokens:
        choices = value.get("choices")
        if isinstance(choices, list):
            messages = [choice.get("message") for choice in objects(choices)]
            context.completion_characters = text_length(messages)
        elif usage is not None:
            context.usage = replace(usage, completion_tokens=0)
