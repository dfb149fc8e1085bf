"""Messages of Anthropic's API and their events as deltas. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gateway import json
from gateway.chat.apis.deltas import (
    CallArguments,
    CallStart,
    Delta,
    Finish,
    Text,
    Thinking,
    Tokens,
)
from gateway.chat.apis.messages.format import STATUSES, STOP_REASONS
from gateway.chat.errors import ChatError, UpstreamServiceError
from gateway.chat.failures import failure_in, is_failure
from gateway.chat.tokens import Usage, count
from gateway.json import mapping, member, objects, text_of

FINISH_REASONS = {
    **{stop: finish for finish, stop in STOP_REASONS.items()},
    "model_context_window_exceeded": "length",
}
THINKING = ("thinking", "redacted_thinking")
WRITTEN, CACHED = "cache_creation_input_tokens", "cache_read_input_tokens"


def usage_in(value: Any) -> Usage:
    """Return the usage that a message or an event reports.

    The API counts cached input apart; here it is within the prompt, as OpenAI has it.
    """
    value = mapping(value)
    given, cached, written = (
        count(value.get(name)) or 0 for name in ("input_tokens", CACHED, WRITTEN)
    )
    thinking = count(member(value, "output_tokens_details", "thinking_tokens")) or 0
    is_known = value.get("output_tokens") is not None
    completion = (count(value["output_tokens"]) or 0) if is_known else None
    return Usage(given + cached + written, completion, cached, written, thinking)


@dataclass(slots=True)
class _Block:
    """A block that has not ended, the number of its call, and the parts of its texts."""

    block: dict[str, Any]
    number: int = 0
    parts: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, text: str) -> None:
        self.parts.setdefault(name, []).append(text)

    def text(self, name: str) -> str:
        return text_of(self.block.get(name)) + "".join(self.parts.get(name, ()))

    def joined(self) -> dict[str, Any]:
        return self.block | {name: self.text(name) for name in self.parts}


class MessagesReader:
    """A Reader."""

    text_mark = b'"text":"'

    def __init__(self) -> None:
        self.has_begun = self.is_done = False
        self._calls = 0
        self._open: dict[Any, _Block] = {}

    def read(self, event: dict[str, Any]) -> Iterator[Delta]:
        if is_failure(event):
            raise _failure(event)
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self.has_begun = True
                # The output of a message that has only begun does not count.
                usage = usage_in(message.get("usage"))
                yield Tokens(replace(usage, completion_tokens=None))
            case {"type": "content_block_start", "content_block": dict(block)}:
                self.has_begun = True
                yield from self._start(str(event.get("index")), block)
            case {"type": "content_block_delta", "delta": dict(delta)}:
                self.has_begun = True
                yield from self._continue(str(event.get("index")), delta)
            case {"type": "content_block_stop"}:
                yield from self._stop(str(event.get("index")))
            case {"type": "message_delta", "delta": dict(delta)}:
                yield from self._stop_all()
                yield Tokens(usage_in(event.get("usage")))
                yield from _finish(delta)
            case {"type": "message_stop"} if self.has_begun:
                yield from self._stop_all()
                self.is_done = True

    def _start(self, index: str, block: dict[str, Any]) -> Iterator[Delta]:
        match block.get("type"):
            case "text" if text := text_of(block.get("text")):
                yield Text(text)
            case "tool_use":
                call = self._open[index] = _Block(block, self._calls)
                self._calls += 1
                key, name = text_of(block.get("id")), text_of(block.get("name"))
                yield CallStart(call.number, key, name)
                if block.get("input"):
                    call.add("input", json.dumps(block["input"]).decode())
                    yield CallArguments(call.number, call.text("input"))
            case "thinking" | "redacted_thinking":
                self._open[index] = _Block(block)
                if text := text_of(block.get("thinking")):
                    yield Thinking(text)

    def _continue(self, index: str, delta: Mapping[str, Any]) -> Iterator[Delta]:
        known = self._open.get(index)
        match delta:
            case {"type": "text_delta", "text": str(text)} if text:
                yield Text(text)
            case {"type": "thinking_delta", "thinking": str(text)} if known and text:
                known.add("thinking", text)
                yield Thinking(text)
            case {"type": "signature_delta", "signature": str(text)} if known:
                known.add("signature", text)
            # The input of other blocks is for tools of the API's own.
            case {"type": "input_json_delta", "partial_json": str(text)} if known:
                known.add("input", text)
                yield CallArguments(known.number, text)

    def _stop_all(self) -> Iterator[Delta]:
        for index in [*self._open]:
            yield from self._stop(index)

    def _stop(self, index: str) -> Iterator[Delta]:
        block = self._open.pop(index, None)
        if block is None:
            return
        if block.block.get("type") in THINKING:
            yield Thinking(block=block.joined())
        elif not block.text("input").strip():
            yield CallArguments(block.number, "{}")

    def whole(self, answer: dict[str, Any]) -> Iterator[Delta]:
        if is_failure(answer):
            raise _failure(answer)
        content = answer.get("content")
        if answer.get("type") != "message" or not isinstance(content, list):
            raise UpstreamServiceError("the response is not a message")
        for place, block in enumerate(objects(content)):
            yield from self._start(str(place), block)
            yield from self._stop(str(place))
        yield Tokens(usage_in(answer.get("usage")))
        yield from _finish({"stop_reason": "end_turn", **answer})


def _failure(event: Mapping[str, Any]) -> ChatError:
    """Return a failure that came with a success; clients of the API get it as it is."""
    error = failure_in(event)
    status = STATUSES.get(str(member(event, "error", "type")), 500)
    response = status, json.dumps(event), dict[str, str]()
    error.upstream = replace(error.upstream, response=response)
    return error


def _finish(delta: Mapping[str, Any]) -> Iterator[Delta]:
    reason = delta.get("stop_reason")
    if reason is not None:
        sequence = text_of(delta.get("stop_sequence")) or None
        yield Finish(FINISH_REASONS.get(str(reason), "stop"), sequence)
