"""Chat completions and their chunks as deltas. Pure."""

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
from gateway.chat.apis.openai import dialects
from gateway.chat.apis.openai.chunks import Template
from gateway.chat.apis.openai.dialects import CallNumbers
from gateway.chat.errors import (
    ChatError,
    InvalidRequestError,
    InvalidValueError,
    UpstreamServiceError,
)
from gateway.chat.failures import failure_in, replaces_answer
from gateway.chat.tokens import Usage
from gateway.json import mapping, objects, text_of


class ChatReader:
    """A Reader; `[DONE]` is no event, its user sets `is_done`."""

    text_mark = Template.MARK

    def __init__(self) -> None:
        self.has_begun = self.is_done = False
        self._numbers: dict[int, CallNumbers] = {}
        # Calls whose name has not come yet.
        self._unnamed: set[tuple[int, int]] = set()

    def read(self, event: dict[str, Any]) -> Iterator[Delta]:
        return self._read(event, InvalidRequestError)

    def whole(self, answer: dict[str, Any]) -> Iterator[Delta]:
        yield from self._read(answer, InvalidValueError)
        if not isinstance(answer.get("choices"), list):
            raise UpstreamServiceError("the answer has no choices")

    def _read(self, event: dict[str, Any], refusal: type[ChatError]) -> Iterator[Delta]:
        if replaces_answer(event):
            raise failure_in(event, refusal=refusal)
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
        said = dialects.said_in(choice)
        text, field = dialects.thought_in(said)
        if text:
            yield Thinking(text, field, choice=number)
        for block in objects(said.get("thinking_blocks")):
            yield Thinking(block=block, choice=number)
        for text in dialects.texts_of(said.get("content")):
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
        if reason := dialects.finish_reason(choice):
            sequence = choice.get("stop_reason")  # vLLM names it
            sequence = sequence if isinstance(sequence, str) else None
            yield Finish(reason, sequence, number)

    def _call(self, part: Mapping[str, Any], choice: int) -> Iterator[Delta]:
        numbers = self._numbers.setdefault(choice, CallNumbers())
        number, is_new = numbers.number_of(part)
        name, arguments = dialects.function_of(part)
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
