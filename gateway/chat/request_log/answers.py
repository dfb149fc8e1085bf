"""Answers in the three shapes of clients, put together from streams. Pure.

An answer is a list with an object for each choice: `text`, `reasoning`, `refusal`, `tool_calls`
and `finish_reason`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway import json
from gateway.chat.core.answers import (
    CallNumbers,
    calls_in,
    function_of,
    said_in,
    texts_of,
    thought_in,
)
from gateway.chat.sse import data_of
from gateway.json import objects

# So many bytes of a stream wait until they are read together.
WAITING = 64 * 1024
MAX_CHOICES = 128
MAX_CALLS = 1000


@dataclass(slots=True)
class Call:
    """A call of a tool."""

    key: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def value(self) -> dict[str, str]:
        arguments = "".join(self.arguments)
        return {"id": self.key, "name": self.name, "arguments": arguments}


@dataclass(slots=True)
class Choice:
    """One of the answers to a request; the parts of its texts by their kind."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    calls: dict[Any, Call] = field(default_factory=dict)
    numbers: CallNumbers = field(default_factory=CallNumbers)
    finish_reason: str = ""

    def value(self) -> dict[str, Any]:
        return {
            "text": "".join(self.text),
            "reasoning": "".join(self.reasoning),
            "refusal": "".join(self.refusal),
            "tool_calls": [call.value() for call in self.calls.values()],
            "finish_reason": self.finish_reason,
        }


class Answer:
    """Collects an answer, up to a number of characters and a little more."""

    def __init__(self, max_characters: int) -> None:
        self._left = max_characters
        self._choices: dict[int, Choice] = {}
        self._waiting: list[bytes] = []
        self._size = 0
        self.is_cut = False

    def read(self, body: bytes) -> None:
        """Read a complete answer, or one event. What is no JSON object, such as `[DONE]`, is none."""
        try:
            event = json.loads(body)
        except ValueError:
            return
        if isinstance(event, dict):
            self._add(event)

    def feed(self, events: bytes) -> None:
        """Add events of a stream, as the client gets them: whole ones."""
        self._waiting.append(events)
        self._size += len(events)
        if self._size > WAITING:
            self._read_waiting()

    def value(self) -> list[dict[str, Any]]:
        self._read_waiting()
        return [self._choices[index].value() for index in sorted(self._choices)]

    def _read_waiting(self) -> None:
        events = b"".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        for block in events.split(b"\n\n"):
            if (payload := data_of(block)) is not None:
                self.read(payload)

    def _add(self, event: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def _choice(self, index: Any = 0) -> Choice:
        number = index if isinstance(index, int) else 0
        if number not in self._choices and len(self._choices) == MAX_CHOICES:
            self.is_cut = True
            return Choice()
        return self._choices.setdefault(number, Choice())

    def _call(self, choice: Choice, key: Any) -> Call:
        if key not in choice.calls and len(choice.calls) == MAX_CALLS:
            self.is_cut = True
            return Call()
        return choice.calls.setdefault(key, Call())

    def _put(self, parts: list[str], text: Any) -> None:
        """Add a text if there is one, as far as there is room."""
        if isinstance(text, dict):
            text = json.dumps(text).decode() if text else ""
        if not isinstance(text, str) or not text:
            return
        if len(text) > self._left:
            self.is_cut = True
            text = text[: self._left]
        self._left -= len(text)
        if text:
            parts.append(text)


class ChatAnswer(Answer):
    """Completions and chunks in OpenAI's shape."""

    def _add(self, event: Mapping[str, Any]) -> None:
        for choice in objects(event.get("choices")):
            known = self._choice(choice.get("index"))
            self._add_part(known, said_in(choice))
            if reason := choice.get("finish_reason"):
                known.finish_reason = str(reason)[:64]

    def _add_part(self, choice: Choice, part: Mapping[str, Any]) -> None:
        for text in texts_of(part.get("content")):
            self._put(choice.text, text)
        self._put(choice.reasoning, thought_in(part)[0])
        self._put(choice.refusal, part.get("refusal"))
        for call in calls_in(part):
            self._add_call(choice, call)

    def _add_call(self, choice: Choice, part: Mapping[str, Any]) -> None:
        number = choice.numbers.number_of(part)
        call, (name, arguments) = self._call(choice, number), function_of(part)
        call.key = call.key or _name(part.get("id"))
        call.name = call.name or _name(name)
        self._put(call.arguments, arguments)


class MessageAnswer(Answer):
    """Messages and their events in Anthropic's shape."""

    def _add(self, event: Mapping[str, Any]) -> None:
        choice, index = self._choice(), event.get("index")
        match event:
            case {"type": "message", "content": list(blocks)}:
                for number, block in enumerate(objects(blocks)):
                    self._add_block(choice, number, block)
                choice.finish_reason = _name(event.get("stop_reason"))
            case {"type": "content_block_start", "content_block": dict(block)}:
                self._add_block(choice, index, block)
            case {"type": "content_block_delta", "delta": dict(delta)}:
                self._put(choice.text, delta.get("text"))
                self._put(choice.reasoning, delta.get("thinking"))
                if delta.get("type") == "input_json_delta":
                    call = self._call(choice, _key(index))
                    self._put(call.arguments, delta.get("partial_json"))
            case {"type": "message_delta", "delta": dict(delta)}:
                reason = delta.get("stop_reason")
                choice.finish_reason = _name(reason) or choice.finish_reason

    def _add_block(self, choice: Choice, index: Any, block: Mapping[str, Any]) -> None:
        self._put(choice.text, block.get("text"))
        self._put(choice.reasoning, block.get("thinking"))
        if str(block.get("type")).endswith("tool_use"):
            call = self._call(choice, _key(index))
            call.key, call.name = _name(block.get("id")), _name(block.get("name"))
            self._put(call.arguments, block.get("input"))


class ResponseAnswer(Answer):
    """Responses and their events in the shape of OpenAI's Responses API."""

    def _add(self, event: Mapping[str, Any]) -> None:
        choice, place = self._choice(), _key(event.get("output_index"))
        kind, delta = event.get("type"), event.get("delta")
        match kind:
            case "response.output_text.delta":
                self._put(choice.text, delta)
            case "response.refusal.delta":
                self._put(choice.refusal, delta)
            case (
                "response.reasoning_summary_text.delta"
                | "response.reasoning_text.delta"
            ):
                self._put(choice.reasoning, delta)
            case (
                "response.function_call_arguments.delta"
                | "response.custom_tool_call_input.delta"
            ):
                self._put(self._call(choice, place).arguments, delta)
            case "response.output_item.added":
                self._name_call(choice, place, event.get("item"))
        self._add_response(choice, event)

    def _add_response(self, choice: Choice, event: Mapping[str, Any]) -> None:
        """Read a whole response, or the status at the end of a stream."""
        response = event.get("response")
        if isinstance(response, dict):
            choice.finish_reason = _name(response.get("status"))
        elif event.get("object") == "response":
            choice.finish_reason = _name(event.get("status"))
            for place, item in enumerate(objects(event.get("output"))):
                self._add_item(choice, place, item)

    def _name_call(self, choice: Choice, place: int, item: Any) -> Call | None:
        if not isinstance(item, dict) or "call_id" not in item:
            return None
        call = self._call(choice, place)
        call.key, call.name = _name(item.get("call_id")), _name(item.get("name"))
        return call

    def _add_item(self, choice: Choice, place: int, item: Mapping[str, Any]) -> None:
        for part in objects(item.get("content")):
            self._put(choice.text, part.get("text"))
            self._put(choice.refusal, part.get("refusal"))
        for part in objects(item.get("summary")):
            self._put(choice.reasoning, part.get("text"))
        if (call := self._name_call(choice, place, item)) is not None:
            self._put(call.arguments, item.get("arguments") or item.get("input"))


# By the action of an operation. Others have no text as their answer and are not stored.
ANSWERS: Mapping[str, type[Answer]] = {
    "chat.completions": ChatAnswer,
    "messages": MessageAnswer,
    "responses": ResponseAnswer,
}


def _name(value: Any) -> str:
    """Return a name or an id, cut to what one has."""
    return value[:128] if isinstance(value, str) else ""


def _key(index: Any) -> int:
    return index if isinstance(index, int) else 0
