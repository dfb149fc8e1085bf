"""What the log keeps of one request while it runs, and what is stored of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from gateway.chat.core import off_loop
from gateway.chat.core.context import ChatContext
from gateway.chat.core.tool_names import TOOLS, tool_names
from gateway.chat.metering.usage import CompletedRequest
from gateway.chat.request_log.answers import ANSWERS, Answer
from gateway.chat.request_log.shortened import Redact, Room, shortened

# The conversation comes first: of what is too long, its last messages are kept.
CONVERSATION = ("messages", "input", "prompt")
MAX_TOOLS = 1000


@dataclass(frozen=True, slots=True)
class EndedRequest:
    """A request that has ended, with its prompt and its answer, both cut."""

    completed: CompletedRequest
    operation: str
    model: str
    prompt: Any
    tools: Sequence[str]
    answer: Any
    rules: Sequence[str]
    error: str
    is_cut: bool


@dataclass(slots=True)
class LogEntry:
    """The prompt of a running request, cut, and its answer so far.

    `redact` masks the texts of the prompt, and those of the answer.
    """

    operation: str
    model: str
    prompt: Any
    tools: Sequence[str]
    answer: Answer
    max_characters: int
    redact: tuple[Redact | None, Redact | None]
    is_cut: bool = False
    rules: list[str] = field(default_factory=list)

    @classmethod
    async def begin(
        cls,
        context: ChatContext,
        operation: str,
        *,
        max_characters: int,
        redact: tuple[Redact | None, Redact | None] = (None, None),
    ) -> LogEntry | None:
        """Return the entry of a request; None for one whose answer is no text."""
        if operation not in ANSWERS:
            return None
        body, size = context.request.body, context.request.size
        room = Room(max_characters, redact[0])
        given, size = _without_tools(body), min(size, max_characters)
        prompt = await off_loop.run(shortened, given, room, size=size)
        return cls(
            operation,
            context.request.model,
            prompt,
            [*tool_names(body)][:MAX_TOOLS],
            ANSWERS[operation](max_characters),
            max_characters,
            redact,
            is_cut=room.is_cut,
        )

    async def watch(self, parts: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """Yield the parts of a stream, and add them to the answer."""
        async with aclosing(parts):
            async for part in parts:
                self.answer.feed(part)
                yield part

    def ended(self, completed: CompletedRequest, error: str) -> EndedRequest:
        """Return what is stored of the request."""
        for redact in self.redact:
            # An upstream may repeat a part of the prompt in its error.
            error = redact(error) if redact is not None else error
        room = Room(self.max_characters, self.redact[1])
        answer = shortened(self.answer.value(), room)
        return EndedRequest(
            completed,
            self.operation,
            self.model,
            self.prompt,
            self.tools,
            answer,
            self.rules,
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
