"""Chat completions and their chunks as deltas, in the forms that servers are known to use. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
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
from gateway.chat.failures import failure_in, is_failure
from gateway.chat.tokens import Usage
from gateway.json import mapping, objects, text_of

# The fields with what a model thought, in which its server gets the text back.
THOUGHTS = ("reasoning_content", "reasoning")


class ChatReader:
    """A Reader; `[DONE]` is no event, its user sets `is_done`."""

    text_mark = Template.MARK

    def __init__(self) -> None:
        self.has_begun = self.is_done = False
        # By choice and index: the number of the call that is open there, and its id.
        self._calls: dict[tuple[int, int], tuple[int, str]] = {}
        self._started = Counter[int]()

    def whole(self, answer: dict[str, Any]) -> Iterator[Delta]:
        yield from self.read(answer)
        if not isinstance(answer.get("choices"), list):
            raise UpstreamServiceError("the answer has no choices")

    def read(self, event: dict[str, Any]) -> Iterator[Delta]:
        if is_failure(event):
            raise failure_in(event)
        usage = Usage.read(event.get("usage"))
        if isinstance(event.get("choices"), list) or usage is not None:
            self.has_begun = True
        for choice in objects(event.get("choices")):
            yield from self._choice(choice)
        if usage is not None:
            yield Tokens(usage)

    def _choice(self, choice: Mapping[str, Any]) -> Iterator[Delta]:
        index = choice.get("index")
        number = index if isinstance(index, int) else 0
        said = mapping(choice.get("delta")) or mapping(choice.get("message"))
        for field in THOUGHTS:
            if text := text_of(said.get(field)):
                yield Thinking(text, field, choice=number)
                break
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
        if reason := text_of(choice.get("finish_reason")):
            # vLLM names the stop sequence.
            yield Finish(reason, text_of(choice.get("stop_reason")) or None, number)

    def _call(self, part: Mapping[str, Any], choice: int) -> Iterator[Delta]:
        """Yield what a part says of its call: a call begins with its name.

        Gemini gives all calls the same index, but each its id.
        """
        index, key = part.get("index"), text_of(part.get("id"))
        place = choice, index if isinstance(index, int) else 0
        known, function = self._calls.get(place), mapping(part.get("function"))
        name, arguments = text_of(function.get("name")), function.get("arguments")
        if name and (known is None or (key and key != known[1])):
            known = self._calls[place] = self._started[choice], key
            self._started[choice] += 1
            yield CallStart(known[0], key, name, part.get("extra_content"), choice)
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments).decode()
        if text := text_of(arguments):
            if known is None:
                raise UpstreamServiceError("a call without a name")
            yield CallArguments(known[0], text, choice)


def texts_of(content: Any) -> Iterator[str]:
    """Yield the texts of a message or delta, which Mistral sends as a list of parts."""
    if isinstance(content, str):
        yield content
    for part in objects(content):
        if isinstance(part.get("text"), str):
            yield part["text"]
