"""What an answer of OpenAI's shape says, in the forms that servers are known to use. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway import json
from gateway.chat.errors import UpstreamServiceError
from gateway.json import mapping, objects

# What some servers write in place of OpenAI's finish reasons: Mistral, Gemini, GLM.
FINISH_REASONS = {
    "model_length": "length",
    "max_tokens": "length",
    "sensitive": "content_filter",
    "safety": "content_filter",
}
# Reasons that say that the server gave up: DeepSeek, GLM, vLLM.
FAILURES = frozenset({"insufficient_system_resource", "network_error", "abort"})
# The fields with what a model thought, in which its server gets the text back.
THOUGHTS = ("reasoning_content", "reasoning")


def finish_reason(choice: Mapping[str, Any]) -> str | None:
    """Return OpenAI's name of the reason why a choice ended; None while it goes on.

    Raises UpstreamServiceError: the server gave up, so that the answer is not complete.
    """
    reason = choice.get("finish_reason")
    if not reason:
        return None
    name = str(reason).lower()
    if name in FAILURES:
        raise UpstreamServiceError(f"finish reason {name}")
    return FINISH_REASONS.get(name, name)


def said_in(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the delta of a choice, or its message; some streams hold a whole message."""
    delta, message = choice.get("delta"), choice.get("message")
    if delta and isinstance(delta, dict):
        return delta
    return _with_numbers(mapping(message))


def _with_numbers(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a whole message whose calls say which they are, as those of a stream do."""
    calls = [{**call, "index": number} for number, call in enumerate(calls_in(message))]
    return {**message, "tool_calls": calls} if calls else message


def texts_of(content: Any) -> Iterator[str]:
    """Yield the texts of a message or delta, which Mistral sends as a list of parts."""
    if isinstance(content, str):
        yield content
    for part in objects(content):
        if isinstance(part.get("text"), str):
            yield part["text"]


def thought_in(said: Mapping[str, Any]) -> tuple[str, str]:
    """Return what the model thought, and the field in which the server wants it back.

    The field is empty if the text is not wanted back: OpenRouter wants `reasoning_details`.
    Mistral sends thinking among the parts of the content.
    """
    for name in THOUGHTS:
        text = said.get(name)
        if isinstance(text, str) and text:
            return text, name
    details = [
        detail.get("text") or detail.get("summary")
        for detail in objects(said.get("reasoning_details"))
    ]
    parts = [
        text
        for part in objects(said.get("content"))
        for text in texts_of(part.get("thinking"))
    ]
    return "".join(text for text in details + parts if isinstance(text, str)), ""


def calls_in(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of a message, or the parts of calls in a delta."""
    return objects(said.get("tool_calls"))


def function_of(call: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name and the arguments of a call or a part; Ollama sends an object."""
    function = mapping(call.get("function"))
    name, arguments = function.get("name"), function.get("arguments")
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments).decode()
    return _text(name), _text(arguments)


def key_of(call: Mapping[str, Any]) -> str:
    """Return the id of a call; empty if there is none."""
    return _text(call.get("id"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


@dataclass(slots=True)
class _Call:
    number: int
    key: str
    has_arguments: bool = False

    def is_other(self, key: str) -> bool:
        """Return True if a part with a name and this id belongs to another call."""
        if key and self.key:
            return key != self.key
        return not key and not self.key and self.has_arguments


class CallNumbers:
    """Tells which call of a stream a part belongs to.

    Some servers leave out the index, give it to all calls, or send another id with each part.
    But a call begins with its name.
    """

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._count = 0

    def number_of(self, part: Mapping[str, Any]) -> int:
        """Return the number of the call, from 0 in the order in which calls begin."""
        index, key = part.get("index"), key_of(part)
        place = index if isinstance(index, int) else 0
        name, arguments = function_of(part)
        call = self._calls.get(place)
        if call is None or (name and call.is_other(key)):
            call = self._calls[place] = _Call(self._count, key)
            self._count += 1
        call.key = call.key or key
        call.has_arguments |= bool(arguments)
        return call.number
