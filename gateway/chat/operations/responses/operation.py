"""OpenAI's Responses API, passed on or translated without a memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeGuard

from gateway.chat.capabilities import Need
from gateway.chat.core import chunks, off_loop
from gateway.chat.core.context import ChatContext
from gateway.chat.core.errors import UnsupportedRequestError
from gateway.chat.core.usage_tokens import (
    Usage,
    estimate,
    prompt_length,
    text_length,
)
from gateway.chat.operations import answers
from gateway.chat.operations.base import Operation
from gateway.chat.operations.chat import checked, renamed
from gateway.chat.operations.responses import result
from gateway.chat.operations.responses.events import ResponseEvents
from gateway.chat.operations.responses.format import (
    RESPONSES,
    BoundStream,
    FailingStream,
)
from gateway.chat.operations.responses.passing import PassedEvents
from gateway.chat.operations.responses.request import ChatRequest, translate
from gateway.chat.operations.responses.result import Skeleton
from gateway.chat.streaming.opened import OpenedStream
from gateway.chat.upstreams.base import Job, Upstream
from gateway.chat.upstreams.openai import OpenAI


def _parts(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    items = body.get("input")
    for item in items if isinstance(items, list) else ():
        for name in ("content", "output") if isinstance(item, dict) else ():
            content = item.get(name)
            for part in content if isinstance(content, list) else ():
                if isinstance(part, dict):
                    yield part


def _has_part(body: Mapping[str, Any], kind: str) -> bool:
    return any(part.get("type") == kind for part in _parts(body))


def _has_format(body: Mapping[str, Any], kind: str) -> bool:
    text = body.get("text")
    text_format = text.get("format") if isinstance(text, dict) else None
    return isinstance(text_format, dict) and text_format.get("type") == kind


def _needs_reasoning(body: Mapping[str, Any]) -> bool:
    reasoning = body.get("reasoning")
    effort = reasoning.get("effort") if isinstance(reasoning, dict) else None
    return effort not in (None, "none")


# The values of `supports`, and whether a body of this shape needs them.
NEEDS: Mapping[str, Need] = {
    "streaming": lambda body: body.get("stream") is True,
    "tools": lambda body: bool(body.get("tools")),
    "vision": lambda body: _has_part(body, "input_image"),
    "audio": lambda body: _has_part(body, "input_audio"),
    "json_object": lambda body: _has_format(body, "json_object"),
    "json_schema": lambda body: _has_format(body, "json_schema"),
    "reasoning": _needs_reasoning,
}


class Responses(Operation):
    """Responses, at once or as a stream."""

    action = "responses"
    capabilities = NEEDS

    async def complete(
        self, upstream: Upstream, job: Job, context: ChatContext
    ) -> bytes:
        if _is_passed(upstream, job):
            body = await upstream.respond(_foreground(job))
            rename = partial(renamed, context, body, "output")
            return await off_loop.run(rename, size=len(body))
        chat = await _translated(job)
        body = await upstream.complete(_with_body(job, chat))
        answer = partial(_response, context, body, chat)
        return await off_loop.run(answer, size=len(body))

    async def open(
        self, upstream: Upstream, job: Job, context: ChatContext
    ) -> OpenedStream:
        if _is_passed(upstream, job):
            passed = PassedEvents(context.request.model)
            _bind(context, passed)
            parts = upstream.respond_in_parts(_foreground(job))
            return OpenedStream(passed, parts, shape="responses")
        chat = await _translated(job)
        skeleton = Skeleton(context.request.body, context.request.model)

        def prompt_tokens() -> int:
            return estimate(context.prompt_characters)

        events = ResponseEvents(skeleton, chat.tools, chat.carrier, prompt_tokens)
        _bind(context, events)
        return OpenedStream(events, upstream.stream(_with_body(job, chat)))


RESPOND = Responses()


def _is_passed(upstream: Upstream, job: Job) -> TypeGuard[OpenAI]:
    """Return True if the upstream has this API itself."""
    return job.entry.responses and isinstance(upstream, OpenAI)


def _foreground(job: Job) -> Job:
    """Raise UnsupportedRequestError for a response that the client would ask for later."""
    if job.request.body.get("background"):
        raise UnsupportedRequestError("background: true")
    return job


async def _translated(job: Job) -> ChatRequest:
    work = partial(translate, job.request.body, job.entry)
    return await off_loop.run(work, size=job.request.size)


def _with_body(job: Job, chat: ChatRequest) -> Job:
    return replace(job, request=replace(job.request, body=chat.body))


def _bind(context: ChatContext, stream: FailingStream) -> None:
    """Let a failure end this stream."""
    context.api_format = replace(RESPONSES, bound=BoundStream(stream, context))


def _response(context: ChatContext, body: bytes, chat: ChatRequest) -> bytes:
    """Return a chat completion as a response, and note its usage. Raises as checked() does."""
    completion = checked(context, body, "choices")
    choices = completion["choices"]
    choice = choices[0] if choices and isinstance(choices[0], dict) else {}
    skeleton = Skeleton(context.request.body, context.request.model)
    output = result.output_of(choice, skeleton, chat.tools, chat.carrier)
    reason = answers.finish_reason(choice)
    tokens = context.usage or Usage(estimate(prompt_length(context.request.body)), None)
    usage = result.usage_of(tokens, text_length(answers.said_in(choice)))
    return chunks.dump(skeleton.ended(reason, output, usage))
