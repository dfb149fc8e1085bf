"""Messages for upstreams that speak OpenAI's shape: translated in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from gateway.chat.context import ChatContext
from gateway.chat.core import chunks
from gateway.chat.operations.carried import Carrier
from gateway.chat.operations.chat import checked
from gateway.chat.operations.messages import request, response
from gateway.chat.operations.messages.call_ids import CallIds
from gateway.chat.operations.messages.stream import MessageStream
from gateway.chat.streaming.opened import OpenedStream
from gateway.chat.tokens import Usage, estimate, prompt_length, text_length
from gateway.chat.upstreams import tolerance
from gateway.chat.upstreams.base import Job, Upstream
from gateway.json import objects

# OpenAI's newer models refuse `max_tokens`; most servers that are like it know only that.
LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"
OPENAI_HOSTS = ("api.openai.com", ".openai.azure.com")
OPENAI_SERVERS = ("azure", "azure-v1")  # also at Azure's other hosts


async def complete(upstream: Upstream, job: Job, context: ChatContext) -> bytes:
    """Return a message, and note its usage."""
    context.response_headers = {"request-id": context.request_id}
    translated, ids = await _translated(job)
    body = await upstream.complete(translated)
    return _message(context, body, ids)


def _message(context: ChatContext, body: bytes, ids: CallIds) -> bytes:
    completion = checked(context, body, "choices")
    messages = [choice.get("message") for choice in objects(completion["choices"])]
    context.completion_characters = text_length(messages[:1])
    usage = context.usage or Usage(estimate(prompt_length(context.request.body)), None)
    if usage.completion_tokens is None:
        usage = usage.with_completion(estimate(context.completion_characters))
    model = context.request.model
    return chunks.dump(response.message(completion, model=model, ids=ids, usage=usage))


async def open_stream(
    upstream: Upstream, job: Job, context: ChatContext
) -> OpenedStream:
    """Return a stream of events."""
    context.response_headers = {"request-id": context.request_id}
    translated, ids = await _translated(job)
    tokens = estimate(prompt_length(job.request.body))
    stream = MessageStream(model=context.request.model, prompt_tokens=tokens, ids=ids)
    return OpenedStream(stream, upstream.stream(translated))


async def _translated(job: Job) -> tuple[Job, CallIds]:
    """Return the call of a chat completion, and the calls that it holds.

    Raises as request.translate() does.
    """
    body, ids = _body(job)
    return replace(job, request=replace(job.request, body=body, raw=b"")), ids


def _body(job: Job) -> tuple[dict[str, Any], CallIds]:
    ids = CallIds(Carrier(job.entry.name))

    def translate(body: Mapping[str, Any]) -> Mapping[str, Any]:
        ids.forget()  # those of a body with other fields
        return request.translate(body, ids)

    body = {**tolerance.translated(job.request, job.entry, translate)}
    supports = job.entry.supports
    if supports is not None and "reasoning" not in supports:
        body.pop("reasoning_effort", None)
    host = urlsplit(job.target.base_url).hostname or ""
    is_openai = job.entry.server in OPENAI_SERVERS or host.endswith(OPENAI_HOSTS)
    if LIMIT in body and is_openai:
        body[NEW_LIMIT] = body.pop(LIMIT)
    return {**body, "model": job.request.model}, ids
