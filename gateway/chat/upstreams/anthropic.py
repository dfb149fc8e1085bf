"""Anthropic's Messages API, translated both ways: text, images, tools, streams, usage."""

from __future__ import annotations

import time
from collections.abc import (
    AsyncGenerator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp

from gateway.chat import model_name
from gateway.chat.core import chunks, failures
from gateway.chat.errors import (
    ChatError,
    InvalidRequestError,
    InvalidValueError,
    UnsupportedRequestError,
    UpstreamServiceError,
)
from gateway.chat.request import dump
from gateway.chat.sse import DONE, MAX_EVENT_BYTES
from gateway.chat.upstreams import http, messages
from gateway.chat.upstreams.anthropic_usage import MessageUsage
from gateway.chat.upstreams.base import Job
from gateway.chat.upstreams.tolerance import adapted, translated
from gateway.chat.upstreams.turns import THINKING
from gateway.json import objects

VERSION = "2023-06-01"
BETA = "beta=true"  # of the query
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
MAX_NAME = 1000


class Anthropic:
    """Translates requests and responses; what has no counterpart is an unsupported request."""

    def __init__(self, client: aiohttp.ClientSession) -> None:
        self._client = client

    async def complete(self, job: Job) -> bytes:
        call = partial(_call, stream=False)
        async with http.post(self._client, job, call) as response:
            body = await http.read_body(response)
        return completion(body)

    async def stream(self, job: Job) -> AsyncGenerator[list[bytes]]:
        posting = http.post(self._client, job, partial(_call, stream=True))
        translation = Translation(job.report)
        del job  # a stream may last, and a prompt be long
        async with posting as response:
            async for payloads in http.events(response):
                ready: list[bytes] = []
                try:
                    translation.feed(payloads, ready)
                except ChatError:
                    yield ready
                    raise
                yield ready

    async def embed(self, job: Job) -> bytes:
        raise UnsupportedRequestError("embeddings")

    def pass_on(
        self, job: Job, path: str
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Send a request of the API's own shape as it is, but for the name of its model."""
        call = partial(_own_call, path=path)
        return http.post(self._client, job, call, keeps_errors=True)


def _own_call(job: Job, path: str) -> http.Call:
    query = "?beta=true" if BETA in job.query.split("&") else ""
    return _posted(job, f"{path}{query}", _own_body(job))


def _own_body(job: Job) -> bytes:
    request, model = adapted(job.request, job.entry), job.target.model
    if request is not job.request:
        return dump({**request.body, "model": model})
    try:
        return model_name.renamed(request.raw, request.body, model)
    except ValueError as error:
        raise InvalidValueError("The body is nested too deeply.") from error


def _posted(job: Job, path: str, body: bytes) -> http.Call:
    base = job.target.base_url.rstrip("/").removesuffix("/v1")
    headers = {"anthropic-version": VERSION, **job.headers}
    if job.target.api_key:
        headers["x-api-key"] = job.target.api_key
    return http.Call(f"{base}{path}", headers, body)


def _call(job: Job, *, stream: bool) -> http.Call:
    translate = partial(
        messages.translate,
        model=job.target.model,
        stream=stream,
        thinking=job.entry.thinking,
    )
    body = translated(job.request, job.entry, translate)
    return _posted(job, "/v1/messages", dump(body))


def completion(body: bytes) -> bytes:
    """Return a message as a chat completion. Raises as failure_in(): it is not one."""
    message = chunks.parse(body)
    if failures.is_failure(message):
        raise failures.failure_in(message)
    content, usage = content_and_usage(message)
    blocks = objects(content)
    text = _join(block.get("text") for block in blocks if block.get("type") == "text")
    calls = [_tool_call(block) for block in blocks if block.get("type") == "tool_use"]
    choice = {
        "index": 0,
        "message": {
            "role": "assistant",
            "content": text if text or not calls else None,
            **_thinking(blocks),
            **({"tool_calls": calls} if calls else {}),
        },
        "finish_reason": _finish_reason(message.get("stop_reason")),
    }
    return chunks.dump(
        {
            "id": message.get("id"),
            "object": "chat.completion",
            "created": int(time.time()),
            "model": message.get("model"),
            "choices": [choice],
            "usage": usage.as_openai(),
        }
    )


def content_and_usage(message: Mapping[str, Any]) -> tuple[list[Any], MessageUsage]:
    """Return what a message holds. Raises UpstreamServiceError for what is none."""
    content = message.get("content")
    if message.get("type") != "message" or not isinstance(content, list):
        raise UpstreamServiceError("the response is not a message")
    usage = MessageUsage()
    usage.add(message.get("usage"))
    return content, usage


def _join(texts: Iterable[Any]) -> str:
    return "".join(text for text in texts if isinstance(text, str))


def _thinking(blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the model's thinking: text to read, and blocks to send back in the next turn.

    A block that is not among the first has its place in the message as `index`.
    """
    indexed = [
        (index, block)
        for index, block in enumerate(blocks)
        if block.get("type") in THINKING
    ]
    text = _join(block.get("thinking") for _, block in indexed)
    thinking_blocks = [
        dict(block) if index == place else {**block, "index": index}
        for place, (index, block) in enumerate(indexed)
    ]
    return {
        **({"reasoning_content": text} if text else {}),
        **({"thinking_blocks": thinking_blocks} if thinking_blocks else {}),
    }


def _finish_reason(reason: Any) -> str:
    return FINISH_REASONS.get(str(reason), "stop")


def _tool_call(block: Mapping[str, Any], nothing: str = "{}") -> dict[str, Any]:
    """Return a call; `nothing` stands for an empty input."""
    given = block.get("input")
    arguments = chunks.dump(given).decode() if given else nothing
    function = {"name": block.get("name"), "arguments": arguments}
    return {"id": block.get("id"), "type": "function", "function": function}


def _name(value: Any) -> str | None:
    """Return a name that every chunk of a stream repeats; None for a text that is too long."""
    return value if isinstance(value, str) and len(value) <= MAX_NAME else None


class ThinkingBlock:
    """A block of thinking that comes in parts; its signature covers the whole block."""

    def __init__(self, block: Mapping[str, Any]) -> None:
        self._block = dict(block)
        self._parts: dict[str, list[str]] = {}
        self._size = 0

    def add(self, name: str, text: str) -> None:
        self._size += len(text)
        if self._size > MAX_EVENT_BYTES:
            raise UpstreamServiceError("a block of thinking is too large")
        first = str(self._block.get(name) or "")
        self._parts.setdefault(name, [first]).append(text)

    def joined(self) -> dict[str, Any]:
        texts = {name: "".join(parts) for name, parts in self._parts.items()}
        return self._block | texts


@dataclass(slots=True)
class OpenCall:
    """A call whose arguments come in parts, with its index among the calls."""

    number: int
    has_arguments: bool = False


class Translation:
    """One stream: each event of the API becomes chunks of the same content."""

    def __init__(self, report: Callable[[Mapping[str, Any]], None]) -> None:
        self._report = report
        self._head: dict[str, Any] = {
            "id": "",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": "",
        }
        self._has_begun = False
        self._usage = MessageUsage()
        self._calls = 0
        self._open_calls: dict[str, OpenCall] = {}  # by the index of their block
        self._thinking: dict[str, ThinkingBlock] = {}

    def feed(self, payloads: Iterable[bytes], ready: list[bytes]) -> None:
        """Append the chunks of events, up to the first failure. Raises as chunks_of() does."""
        for payload in payloads:
            ready += self.chunks_of(chunks.parse(payload))

    def chunks_of(self, event: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield chunks. Raises InvalidRequestError or UpstreamServiceError for an error event."""
        if failures.is_failure(event):
            raise failures.failure_in(event, refusal=InvalidRequestError)
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self._has_begun = True
                self._head |= {
                    name: _name(message.get(name)) for name in ("id", "model")
                }
                self._usage.begin(message.get("usage"))
                self._report(self._usage.as_openai())
                yield self._delta({"role": "assistant", "content": ""})
            case {"type": "content_block_start", "content_block": dict(block)}:
                yield from self._start(event.get("index"), block)
            case {"type": "content_block_delta", "delta": dict(delta)}:
                yield from self._continue(event.get("index"), delta)
            case {"type": "content_block_stop", "index": int(index)}:
                if thinking := self._thinking.pop(str(index), None):
                    block = {"index": index, **thinking.joined()}
                    yield self._delta({"thinking_blocks": [block]})
                yield from self._end_calls(str(index))
            case {"type": "message_delta", "delta": dict(delta)}:
                self._usage.add(event.get("usage"))
                self._report(self._usage.as_openai())
                if delta.get("stop_reason") is not None:
                    yield from self._end_calls(*self._open_calls)
                    yield self._delta({}, _finish_reason(delta["stop_reason"]))
            case {"type": "message_stop"} if self._has_begun:
                yield from self._end_calls(*self._open_calls)
                yield chunks.dump(
                    {**self._head, "choices": [], "usage": self._usage.as_openai()}
                )
                yield DONE

    def _start(self, index: Any, block: Mapping[str, Any]) -> Iterator[bytes]:
        if block.get("type") == "tool_use":
            yield from self._start_call(index, block)
        elif block.get("type") in THINKING:
            self._thinking[str(index)] = ThinkingBlock(block)
            if text := block.get("thinking"):
                yield self._delta({"reasoning_content": text})
        elif block.get("type") == "text" and block.get("text"):
            yield self._delta({"content": block["text"]})

    def _continue(self, index: Any, delta: Mapping[str, Any]) -> Iterator[bytes]:
        match delta:
            case {"type": "text_delta", "text": str(text)}:
                yield self._delta({"content": text})
            case {"type": "thinking_delta", "thinking": text}:
                yield from self._think(index, "thinking", text)
            case {"type": "signature_delta", "signature": text}:
                yield from self._think(index, "signature", text)
            case {"type": "input_json_delta", "partial_json": str(text)}:
                # The input of other blocks is for tools of the API's own.
                if call := self._open_calls.get(str(index)):
                    call.has_arguments = call.has_arguments or bool(text.strip())
                    yield self._arguments(call, text)

    def _start_call(self, index: Any, block: Mapping[str, Any]) -> Iterator[bytes]:
        number = self._calls
        self._calls += 1
        if not block.get("input"):  # it comes in parts, or there is none
            self._open_calls[str(index)] = OpenCall(number)
        call = {"index": number, **_tool_call(block, nothing="")}
        yield self._delta({"tool_calls": [call]})

    def _end_calls(self, *indexes: str) -> Iterator[bytes]:
        """End the calls of some blocks; one without arguments gets an empty object."""
        for index in indexes:
            call = self._open_calls.pop(index, None)
            if call is not None and not call.has_arguments:
                yield self._arguments(call, "{}")
        if not self._open_calls:
            self._open_calls.clear()  # an emptied table is still searched as a whole

    def _arguments(self, call: OpenCall, text: str) -> bytes:
        part = {"index": call.number, "function": {"arguments": text}}
        return self._delta({"tool_calls": [part]})

    def _think(self, index: Any, name: str, text: Any) -> Iterator[bytes]:
        thinking = self._thinking.get(str(index))
        if thinking is not None and isinstance(text, str) and text:
            thinking.add(name, text)
            if name == "thinking":
                yield self._delta({"reasoning_content": text})

    def _delta(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return chunks.dump({**self._head, "choices": [choice]})
