"""Messages for an upstream of Anthropic's own kind: every byte passes, but the model's name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import replace
from typing import Any

from gateway.chat import model_name
from gateway.chat.context import ChatContext
from gateway.chat.core import chunks, failures
from gateway.chat.core.chunks import Template
from gateway.chat.core.messages_format import STATUSES, frame, frame_raw
from gateway.chat.errors import (
    ChatError,
    InvalidRequestError,
    UpstreamServiceError,
)
from gateway.chat.operations.carried import PREFIX
from gateway.chat.operations.messages.turns import OWN_PREFIX
from gateway.chat.request import dump
from gateway.chat.sse import BlockReader, data_of
from gateway.chat.streaming.opened import OpenedStream
from gateway.chat.streaming.transformer import Transformer
from gateway.chat.tokens import Usage, text_length
from gateway.chat.upstreams import http
from gateway.chat.upstreams.anthropic import Anthropic, content_and_usage
from gateway.chat.upstreams.anthropic_usage import MessageUsage
from gateway.chat.upstreams.base import Job
from gateway.json import member

PATH, COUNT_PATH = "/v1/messages", "/v1/messages/count_tokens"
# How the signatures begin that the gateway writes for upstreams of another kind.
OTHERS = (OWN_PREFIX, PREFIX)
OTHERS_MARKS = tuple(mark.encode() for mark in OTHERS)
# Most events of a stream are the same around this.
TEXT = b'"text":"'


async def complete(upstream: Anthropic, job: Job, context: ChatContext) -> bytes:
    """Return a message, and note its usage."""
    body = await _post(upstream, job, context, PATH)
    return _checked(context, body)


async def count(upstream: Anthropic, job: Job, context: ChatContext) -> bytes:
    """Return how many tokens a message has.

    The API refuses fields here that it takes with a message, such as `inference_geo`.
    """
    job = replace(job, entry=replace(job.entry, extra_body={}))
    return await _post(upstream, job, context, COUNT_PATH)


async def _own(job: Job) -> Job:
    """Return the call without the thinking of upstreams of another kind, which the API refuses.

    A client that changes the model sends it, and so does a fallback.
    """
    raw = job.request.raw
    if not any(mark in raw for mark in OTHERS_MARKS):
        return job
    return _without_others(job)


def _without_others(job: Job) -> Job:
    turns = job.request.body.get("messages")
    if not isinstance(turns, list):
        return job
    body = {**job.request.body, "messages": [*_kept(turns)]}
    raw = dump(body)
    return replace(job, request=replace(job.request, body=body, raw=raw))


def _kept(turns: list[Any]) -> Iterator[Any]:
    """Yield turns without such blocks; those that have no others are left out."""
    for turn in turns:
        match turn:
            case {"content": list(blocks)} if any(map(_is_of_others, blocks)):
                kept = [block for block in blocks if not _is_of_others(block)]
                if kept:
                    yield {**turn, "content": kept}
            case _:
                yield turn


def _is_of_others(block: Any) -> bool:
    match block:
        case {"type": "thinking", "signature": str(signature)}:
            return signature.startswith(OTHERS)
    return False


async def _post(
    upstream: Anthropic, job: Job, context: ChatContext, path: str
) -> bytes:
    async with upstream.pass_on(await _own(job), path) as response:
        context.response_headers = http.passed_on(response.headers)
        return await http.read_body(response)


def _checked(context: ChatContext, body: bytes) -> bytes:
    """Return a message with the requested name of its model. Raises UpstreamServiceError."""
    message = chunks.parse(body)
    if failures.is_failure(message):
        raise _failure(body, message)
    content, usage = content_and_usage(message)
    context.report(usage.as_openai())
    context.completion_characters = text_length(content)
    return _renamed(body, message, context.request.model)


def _renamed(raw: bytes, message: Mapping[str, Any], model: str) -> bytes:
    if "model" not in message:
        return raw
    try:
        return model_name.renamed(raw, message, model)
    except ValueError as error:
        raise UpstreamServiceError(chunks.NESTED_TOO_DEEPLY) from error


def _failure(payload: bytes, event: Mapping[str, Any]) -> ChatError:
    """Return the failure that JSON with status 200 reports; its client gets it as it is."""
    failure = failures.failure_in(event, refusal=InvalidRequestError)
    status = STATUSES.get(str(member(event, "error", "type")), 500)
    failure.upstream = replace(failure.upstream, response=(status, payload, {}))
    return failure


async def open_stream(
    upstream: Anthropic, job: Job, context: ChatContext
) -> OpenedStream:
    """Return a stream of events as they come."""
    transformer = PassedStream(context.request.model)
    return OpenedStream(transformer, _events(upstream, job, context))


async def _events(
    upstream: Anthropic, job: Job, context: ChatContext
) -> AsyncGenerator[list[bytes]]:
    posting = upstream.pass_on(await _own(job), PATH)
    del job  # a stream may last, and a prompt be long
    async with posting as response:
        context.response_headers = http.passed_on(response.headers)
        async for blocks in http.events(response, BlockReader):
            yield blocks


class PassedStream(Transformer):
    """A Transformer that changes the model's name in the first event, and nothing else."""

    DONE_COMPLETES = False

    def __init__(self, model: str) -> None:
        super().__init__()
        self._model = model
        self._counts = MessageUsage()

    def _transform(self, payload: bytes) -> None:
        self._ready.append(self._transformed(payload))

    def _transformed(self, block: bytes) -> bytes:
        payload = data_of(block)
        if payload is None:
            return block
        event = chunks.parse(payload)
        if failures.is_failure(event):
            raise _failure(payload.replace(b"\n", b" "), event)
        match event.get("type"):
            case "message_start":
                return self._start(block, event)
            case "content_block_delta":
                self.chunks += 1
                self.characters += text_length(event.get("delta"))
                self._template = Template.learn(block, block, TEXT)
            case "content_block_start":
                self.characters += text_length(event.get("content_block"))
            case "message_delta":
                self._end(event)
            case "message_stop":
                self.is_done = True
        return block

    def _start(self, block: bytes, event: dict[str, Any]) -> bytes:
        self.chunks += 1
        message = event.get("message")
        if not isinstance(message, dict):
            return block
        self._counts.begin(message.get("usage"))
        self.usage = Usage.reported(self._counts.as_openai())
        if message.get("model", self._model) == self._model:
            return block
        if renamed := chunks.rename_only(block, self._model):
            return renamed
        message["model"] = self._model
        return frame(event).removesuffix(b"\n\n")

    def _end(self, event: Mapping[str, Any]) -> None:
        self._counts.add(event.get("usage"))
        self.usage = Usage.reported(self._counts.as_openai())
        if member(event, "delta", "stop_reason"):
            self._has_finished = True

    def end(self) -> bytes:
        """Return the last event if the upstream has left it out."""
        rest = self.flush()
        if self.is_done:
            return rest
        return rest + frame_raw(b"message_stop", b'{"type":"message_stop"}')
