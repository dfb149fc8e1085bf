"""An answer put together from its deltas, up to a number of characters. Pure.

It is a list with an object for each choice: `text`, `reasoning`, `refusal`, `tool_calls` and
`finish_reason`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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

MAX_CHOICES = 128
MAX_CALLS = 1000
MAX_NAME = 128


@dataclass(slots=True)
class Choice:
    """One of the answers to a request; the parts of its texts by their kind."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    calls: dict[int, CallStart] = field(default_factory=dict)
    arguments: dict[int, list[str]] = field(default_factory=dict)
    finish_reason: str = ""

    def value(self) -> dict[str, Any]:
        names = ("text", "reasoning", "refusal")
        return {
            **{name: "".join(self.texts.get(name, ())) for name in names},
            "tool_calls": [self._call(number) for number in self.calls],
            "finish_reason": self.finish_reason,
        }

    def _call(self, number: int) -> dict[str, str]:
        start, parts = self.calls[number], self.arguments.get(number, ())
        key, name = start.key[:MAX_NAME], start.name[:MAX_NAME]
        return {"id": key, "name": name, "arguments": "".join(parts)}


class Answer:
    """Collects an answer."""

    def __init__(self, max_characters: int) -> None:
        self.left = max_characters
        self._choices: dict[int, Choice] = {}
        self.is_cut = False

    def add(self, delta: Delta) -> None:
        if isinstance(delta, Tokens):
            return
        choice = self._choice(delta.choice)
        match delta:
            case Text(text, is_refusal):
                name = "refusal" if is_refusal else "text"
                self._put(choice.texts.setdefault(name, []), text)
            case Thinking(text):
                self._put(choice.texts.setdefault("reasoning", []), text)
            case CallStart(number) if len(choice.calls) < MAX_CALLS:
                choice.calls[number] = delta
            case CallArguments(number, text) if number in choice.calls:
                self._put(choice.arguments.setdefault(number, []), text)
            case Finish(reason):
                choice.finish_reason = reason[:64]
            case _:
                self.is_cut = True

    def value(self) -> list[dict[str, Any]]:
        return [self._choices[index].value() for index in sorted(self._choices)]

    def _choice(self, index: int) -> Choice:
        if index not in self._choices and len(self._choices) == MAX_CHOICES:
            self.is_cut = True
            return Choice()
        return self._choices.setdefault(index, Choice())

    def _put(self, parts: list[str], text: str) -> None:
        """Add a text as far as there is room."""
        if len(text) > self.left:
            self.is_cut = True
            text = text[: self.left]
        self.left -= len(text)
        if text:
            parts.append(text)
