"""What the log keeps of one request while it runs, and what is stored of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.chat.context import ChatContext
from gateway.chat.metering.usage import CompletedRequest
from gateway.chat.request_log.answers import Answer
from gateway.chat.request_log.shortened import Room, shortened
from gateway.json import member, objects

# The conversation comes first: of what is too long, its last messages are kept.
CONVERSATION = ("messages", "input", "prompt")
MAX_TOOLS = 1000
MAX_NAME = 128
TOOLS = ("tools", "functions")
# Operations whose answers are text.
LOGGED = ("chat.completions", "messages", "responses")


@dataclass(frozen=True, slots=True)
class EndedRequest:
    """A request that has ended, with its prompt and its answer, both cut."""

    completed: CompletedRequest
    operation: str
    model: str
    prompt: Any
    tools: Sequence[str]
    answer: Any
    error: str
    is_cut: bool


@dataclass(slots=True)
class LogEntry:
    """The prompt of a running request, cut, and its answer so far."""

    operation: str
    model: str
    prompt: Any
    tools: Sequence[str]
    answer: Answer
    max_characters: int
    is_cut: bool = False

    @classmethod
    def begin(
        cls,
        context: ChatContext,
        operation: str,
        *,
        max_characters: int,
    ) -> LogEntry | None:
        """Return the entry of a request; None for one whose answer is no text."""
        if operation not in LOGGED:
            return None
        body, room = context.request.body, Room(max_characters)
        prompt = shortened(_without_tools(body), room)
        return cls(
            operation,
            context.request.model,
            prompt,
            [*tool_names(body)][:MAX_TOOLS],
            Answer(max_characters),
            max_characters,
            is_cut=room.is_cut,
        )

    def begin_answer(self) -> None:
        """Forget what a target said that failed."""
        self.answer = Answer(self.max_characters)

    def ended(self, completed: CompletedRequest, error: str) -> EndedRequest:
        """Return what is stored of the request."""
        room = Room(self.max_characters)
        answer = shortened(self.answer.value(), room)
        return EndedRequest(
            completed,
            self.operation,
            self.model,
            self.prompt,
            self.tools,
            answer,
            error,
            self.is_cut or self.answer.is_cut or room.is_cut,
        )


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


def _without_tools(body: Mapping[str, Any]) -> dict[str, Any]:
    first = {name: body[name] for name in CONVERSATION if name in body}
    return first | {name: item for name, item in body.items() if name not in TOOLS}


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
