"""OpenAI's Responses API, passed on or translated without a memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeGuard

from gateway.chat.capabilities import CAPABILITIES
from gateway.chat.context import ChatContext
from gateway.chat.core import chunks
from gateway.chat.errors import UnsupportedRequestError
from gateway.chat.operations.base import Operation
from gateway.chat.operations.chat import checked, renamed
from gateway.chat.operations.responses.events import ResponseEvents
from gateway.chat.operations.responses.format import RESPONSES
from gateway.chat.operations.responses.passing import PassedEvents, own_items
from gateway.chat.operations.responses.request import ChatRequest, translate
from gateway.chat.operations.responses.result import Skeleton
from gateway.chat.streaming.opened import OpenedStream
from gateway.chat.tokens import estimate, prompt_length
from gateway.chat.upstreams.base import Job, Upstream
from gateway.chat.upstreams.openai import OpenAI
from gateway.json import member


class Responses(Operation):
    """Responses, at once or as a stream."""

    action = "responses"
    capabilities = CAPABILITIES | {
        "reasoning": lambda body: (
            member(body, "reasoning", "effort") not in (None, "none")
        )
    }

    async def complete(
        self, upstream: Upstream, job: Job, context: ChatContext
    ) -> bytes:
        if _is_passed(upstream, job):
            body = await upstream.respond(_own(job))
            return renamed(context, body, "output")
        chat = await _translated(job)
        body = await upstream.complete(_with_body(job, chat))
        return _response(context, body, chat)

    async def open(
        self, upstream: Upstream, job: Job, context: ChatContext
    ) -> OpenedStream:
        if _is_passed(upstream, job):
            passed = PassedEvents(context.request.model)
            _bind(context, passed)
            parts = upstream.respond_in_parts(_own(job))
            return OpenedStream(passed, parts)
        chat = await _translated(job)
        events = _events(context, chat, is_stream=True)
        _bind(context, events)
        return OpenedStream(events, upstream.stream(_with_body(job, chat)))


RESPOND = Responses()


def _is_passed(upstream: Upstream, job: Job) -> TypeGuard[OpenAI]:
    """Return True if the upstream has this API itself."""
    return "responses" in job.entry.speaks and isinstance(upstream, OpenAI)


def _own(job: Job) -> Job:
    """Return the call without what upstreams of another kind want back.

    Raises UnsupportedRequestError for a response that the client would ask for later.
    """
    body = job.request.body
    if body.get("background"):
        raise UnsupportedRequestError("background: true")
    given = body.get("input")
    if not isinstance(given, list):
        return job
    body = {**body, "input": [*own_items(given)]}
    return replace(job, request=replace(job.request, body=body))


async def _translated(job: Job) -> ChatRequest:
    request = job.request
    return translate(request.body, job.entry)


def _with_body(job: Job, chat: ChatRequest) -> Job:
    return replace(job, request=replace(job.request, body=chat.body))


def _bind(context: ChatContext, stream: PassedEvents | ResponseEvents) -> None:
    """Let a failure end this stream."""

    def fail(error: Mapping[str, Any], status: int) -> bytes:
        context.error_status = status
        return stream.failed(error)

    context.api_format = replace(RESPONSES, fail=fail)


def _response(context: ChatContext, body: bytes, chat: ChatRequest) -> bytes:
    """Return a chat completion as a response, and note its usage. Raises as checked() does."""
    answer = _events(context, chat, is_stream=False)
    answer.read(checked(context, body, "choices"))
    return chunks.dump(answer.ended())


def _events(
    context: ChatContext, chat: ChatRequest, *, is_stream: bool
) -> ResponseEvents:
    skeleton = Skeleton(context.request.body, context.request.model)

    def prompt_tokens() -> int:
        length = context.prompt_characters or prompt_length(context.request.body)
        return estimate(length)

    tools, carrier = chat.tools, chat.carrier
    return ResponseEvents(skeleton, tools, carrier, prompt_tokens, is_stream=is_stream)
