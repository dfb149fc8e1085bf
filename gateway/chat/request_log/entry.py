"""What the log keeps of one request while it runs, and what is stored of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway import json
from gateway.chat.context import ChatContext
from gateway.chat.request_log.answers import Answer
from gateway.chat.request_log.cut import Room
from gateway.json import member, objects
from gateway.policy import storable

# The conversation, and what stands before it: of what is too long, its last messages are kept.
CONVERSATION = ("messages", "input", "prompt")
INSTRUCTING = ("system", "developer")
MAX_TOOLS = 1000
MAX_NAME = 128
TOOLS = ("tools", "functions")
# Operations whose answers are text.
LOGGED = ("chat.completions", "messages", "responses")
EXCERPT = 120
# What an entry takes beside its texts, as characters.
OBJECTS = 2_000


@dataclass(slots=True)
class LogEntry:
    """The prompt of a request, cut, the names of its tools, and its answer so far."""

    prompt: Any
    tools: Sequence[str]
    room: Room
    max_characters: int
    answer: Answer = field(init=False)

    def __post_init__(self) -> None:
        self.begin_answer()

    @classmethod
    def begin(cls, context: ChatContext, *, max_characters: int) -> LogEntry | None:
        """Return the entry of a request; None for one whose answer is no text."""
        if context.operation.action not in LOGGED:
            return None
        body, room = context.request.body, Room(max_characters)
        tools = [*tool_names(body)][:MAX_TOOLS]
        return cls(_cut_prompt(body, room), tools, room, max_characters)

    def begin_answer(self) -> None:
        """Forget what a target said that failed."""
        self.answer = Answer(self.max_characters)

    @property
    def is_cut(self) -> bool:
        return self.room.is_cut or self.answer.is_cut

    @property
    def size(self) -> int:
        """About how many characters it keeps."""
        return OBJECTS + 2 * self.max_characters - self.room.left - self.answer.left

    def columns(self) -> tuple[Any, ...]:
        """Return excerpt, truncated, tools, prompt and answer as a row has them."""
        texts = (self.tools, self.prompt, self.answer.value())
        return (
            storable(last_text(self.prompt)[:EXCERPT]),
            self.is_cut,
            *(json.dumps(value).decode() for value in texts),
        )


def _cut_prompt(body: Mapping[str, Any], room: Room) -> dict[str, Any]:
    """Return what fits of a body, without tools: instructions first, then the last messages."""
    prompt = {}
    names = [name for name in body if name not in TOOLS]
    for name in sorted(names, key=lambda name: name not in CONVERSATION):
        items = body[name]
        first = items[0] if isinstance(items, list) and items else None
        is_instruction = isinstance(first, dict) and first.get("role") in INSTRUCTING
        kept = [room.cut(first)] if is_instruction else []
        rest = room.cut(items[1:] if kept else items)
        prompt[name] = [*kept, *rest] if kept else rest
    return prompt


def last_text(prompt: Any) -> str:
    """Return the text of the last message of a prompt, "" if there is none."""
    items = next((prompt[name] for name in CONVERSATION if name in prompt), "")
    return _text(items)


def _text(value: Any) -> str:
    """Return the last text of a message: its content, or that of its last part."""
    match value:
        case str():
            return value
        case [*_, last]:
            return _text(last)
        case {"content": content}:
            return _text(content)
        case {"text": str(text)} | {"output": str(text)}:
            return text
    return ""


def tool_names(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the tools that a request offers.

    A tool that the upstream has itself is named by its type.
    """
    for key in TOOLS:
        for tool in objects(body.get(key)):
            inner = member(tool, "function", "name")
            name = inner or tool.get("name") or tool.get("type")
            if isinstance(name, str):
                yield name[:MAX_NAME]
