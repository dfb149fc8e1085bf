"""Chat completions and their chunks as deltas, in the forms that servers are known to use. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
from gateway.chat.apis.openai.chunks import Template
from gateway.chat.errors import UpstreamServiceError
from gateway.chat.failures import failure_in, replaces_answer
from gateway.chat.tokens import Usage
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


class ChatReader:
    """A Reader; `[DONE]` is no event, its user sets `is_done`."""

    text_mark = Template.MARK

    def __init__(self) -> None:
        self.has_begun = self.is_done = False
        self._numbers: dict[int, CallNumbers] = {}
        # Calls whose name has not come yet.
        self._unnamed: set[tuple[int, int]] = set()

    def whole(self, answer: dict[str, Any]) -> Iterator[Delta]:
        yield from self.read(answer)
        if not isinstance(answer.get("choices"), list):
            raise UpstreamServiceError("the answer has no choices")

    def read(self, event: dict[str, Any]) -> Iterator[Delta]:
        if replaces_answer(event):
            raise failure_in(event)
        usage = usage_in(event)
        if isinstance(event.get("choices"), list) or usage is not None:
            self.has_begun = True
        for choice in objects(event.get("choices")):
            yield from self._choice(choice)
        if usage is not None:
            yield Tokens(usage)

    def _choice(self, choice: Mapping[str, Any]) -> Iterator[Delta]:
        index = choice.get("index")
        number = index if isinstance(index, int) else 0
        said = said_in(choice)
        text, field = thought_in(said)
        if text:
            yield Thinking(text, field, choice=number)
        for block in objects(said.get("thinking_blocks")):
            yield Thinking(block=block, choice=number)
        for text in texts_of(said.get("content")):
            if text:
                yield Text(text, choice=number)
        if refusal := text_of(said.get("refusal")):
            yield Text(refusal, is_refusal=True, choice=number)
        for place, call in enumerate(objects(said.get("tool_calls"))):
            # Those of a whole message have no numbers.
            is_whole = "message" in choice and "index" not in call
            yield from self._call(
                {**call, "index": place} if is_whole else call, number
            )
        if reason := finish_reason(choice):
            sequence = choice.get("stop_reason")  # vLLM names it
            sequence = sequence if isinstance(sequence, str) else None
            yield Finish(reason, sequence, number)

    def _call(self, part: Mapping[str, Any], choice: int) -> Iterator[Delta]:
        numbers = self._numbers.setdefault(choice, CallNumbers())
        number, is_new = numbers.number_of(part)
        name, arguments = function_of(part)
        place = choice, number
        if is_new and not name:
            self._unnamed.add(place)
        elif is_new or (name and place in self._unnamed):
            self._unnamed.discard(place)
            key, extra = text_of(part.get("id")), part.get("extra_content")
            yield CallStart(number, key, name, extra, choice)
        if arguments:
            if place in self._unnamed:
                raise UpstreamServiceError("a call without a name")
            yield CallArguments(number, arguments, choice)


def usage_in(value: Mapping[str, Any]) -> Usage | None:
    """Return the usage of a response or chunk: Kimi's is in its choice, Groq's in `x_groq`."""
    choices = value.get("choices")
    first = mapping(choices[0]) if isinstance(choices, list) and choices else {}
    return (
        Usage.read(value.get("usage"))
        or Usage.read(first.get("usage"))
        or Usage.read(mapping(value.get("x_groq")).get("usage"))
    )


# ── What servers say in forms of their own ──────────────────────────────────────────


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
