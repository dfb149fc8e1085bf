"""Responses and their events as deltas, for what is counted and logged. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.chat.apis.deltas import (
    CallArguments,
    CallStart,
    Delta,
    Finish,
    Text,
    Thinking,
    Tokens,
)
from gateway.chat.errors import ChatError, UpstreamServiceError
from gateway.chat.failures import failure_in, is_failure
from gateway.chat.tokens import Usage
from gateway.json import member, objects, text_of

# Events before any part of the answer: until it comes, another target can answer.
OPENING = frozenset({"response.created", "response.queued", "response.in_progress"})
FINAL = frozenset({"response.completed", "response.incomplete"})
FAILED = frozenset({"response.failed", "error"})


class ResponsesReader:
    """A Reader."""

    text_mark = b""

    def __init__(self) -> None:
        self.has_begun = self.is_done = False

    def read(self, event: dict[str, Any]) -> Iterator[Delta]:
        kind, text = text_of(event.get("type")), text_of(event.get("delta"))
        if kind in FAILED or is_failure(event):
            raise _failure(event)
        self.has_begun |= bool(kind) and kind not in OPENING
        place = event.get("output_index")
        number = place if isinstance(place, int) else 0
        match kind:
            case "response.output_text.delta" if text:
                yield Text(text)
            case "response.refusal.delta" if text:
                yield Text(text, is_refusal=True)
            case (
                "response.reasoning_summary_text.delta"
                | "response.reasoning_text.delta"
            ) if text:
                yield Thinking(text)
            case (
                "response.function_call_arguments.delta"
                | "response.custom_tool_call_input.delta"
            ) if text:
                yield CallArguments(number, text)
            case "response.output_item.added":
                yield from _call(number, event.get("item"))
        response = event.get("response")
        if isinstance(response, dict):
            yield from self._ended(response, is_final=kind in FINAL)

    def _ended(self, response: Mapping[str, Any], *, is_final: bool) -> Iterator[Delta]:
        if usage := Usage.read(response.get("usage")):
            yield Tokens(usage)
        if is_final:
            self.is_done = True
            yield Finish(text_of(response.get("status")))

    def whole(self, answer: dict[str, Any]) -> Iterator[Delta]:
        if is_failure(answer) or answer.get("status") == "failed":
            raise _failure({"response": answer})
        if not isinstance(answer.get("output"), list):
            raise UpstreamServiceError("the answer has no output")
        for number, item in enumerate(objects(answer["output"])):
            for part in objects(item.get("content")):
                if text := text_of(part.get("text") or part.get("refusal")):
                    yield Text(text, is_refusal="refusal" in part)
            for part in objects(item.get("summary")):
                yield Thinking(text_of(part.get("text")))
            yield from _call(number, item)
            if text := text_of(item.get("arguments") or item.get("input")):
                yield CallArguments(number, text)
        yield from self._ended(answer, is_final=True)


def _call(number: int, item: Any) -> Iterator[Delta]:
    if isinstance(item, dict) and "call_id" in item:
        key, name = text_of(item.get("call_id")), text_of(item.get("name"))
        yield CallStart(number, key, name)


def _failure(event: Mapping[str, Any]) -> ChatError:
    """Return the failure that an event or a response reports."""
    error = member(event, "response", "error") or event.get("error") or event
    return failure_in({"error": error})
