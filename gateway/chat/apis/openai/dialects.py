"""What an answer of OpenAI's shape says, in the forms that servers are known to use. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway import json
from gateway.chat.errors import UpstreamServiceError
from gateway.json import mapping, objects, text_of

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
    return mapping(choice.get("delta")) or mapping(choice.get("message"))


def texts_of(content: Any) -> Iterator[str]:
    """Yield the texts of a message or delta, which Mistral sends as a list of parts."""
    if isinstance(content, str):
        yield content
    for part in objects(content):
        if isinstance(part.get("text"), str):
            yield part["text"]


def thought_in(said: Mapping[str, Any]) -> tuple[str, str]:
    """Return what the model thought, and the field in which the server wants it back, if it does.

    Mistral sends thinking among the parts of the content.
    """
    for name in THOUGHTS:
        if text := text_of(said.get(name)):
            return text, name
    parts = objects(said.get("content"))
    return "".join(t for part in parts for t in texts_of(part.get("thinking"))), ""


def function_of(call: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name and the arguments of a call or a part; Ollama sends an object."""
    function = mapping(call.get("function"))
    arguments = function.get("arguments")
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments).decode()
    return text_of(function.get("name")), text_of(arguments)


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
        self._calls: dict[Any, _Call] = {}

    def number_of(self, part: Mapping[str, Any]) -> tuple[int, bool]:
        """Return the number of the call, from 0 in the order of calls, and True if it is new."""
        index, key = part.get("index"), text_of(part.get("id"))
        place = index if isinstance(index, int) else 0
        name, arguments = function_of(part)
        call = self._calls.get(place)
        is_new = call is None or (bool(name) and call.is_other(key))
        if call is None or is_new:
            number = 0 if call is None and not self._calls else self._next()
            call = self._calls[place] = _Call(number, key)
        call.key = call.key or key
        call.has_arguments |= bool(arguments)
        return call.number, is_new

    def _next(self) -> int:
        return 1 + max(call.number for call in self._calls.values())
