"""An answer as a stream of deltas, and what reads and writes them. Pure.

Readers make deltas of an upstream's events, writers turn them into what a client's API has. Whole
answers go the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from gateway.chat.tokens import Usage

if TYPE_CHECKING:
    from gateway.chat.context import ChatContext


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    is_refusal: bool = False
    choice: int = 0


@dataclass(frozen=True, slots=True)
class Thinking:
    """A part of what the model thinks.

    `block`, at the end of a block of Anthropic's API, is the whole of it with its signature; its
    text came before. `field` is where a server of OpenAI's shape wants the text back.
    """

    text: str = ""
    field: str = ""
    block: Mapping[str, Any] | None = None
    choice: int = 0


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call begins: `number` counts the calls of a choice. `extra` is to be sent back with it."""

    number: int
    key: str
    name: str
    extra: Any = None
    choice: int = 0


@dataclass(frozen=True, slots=True)
class CallArguments:
    number: int
    text: str
    choice: int = 0


@dataclass(frozen=True, slots=True)
class Finish:
    """A choice ended: OpenAI's name of the reason, and the stop sequence if it is known."""

    reason: str
    sequence: str | None = None
    choice: int = 0


@dataclass(frozen=True, slots=True)
class Tokens:
    """The usage as far as it is known, which grows."""

    usage: Usage


Delta = Text | Thinking | CallStart | CallArguments | Finish | Tokens


class Reader(Protocol):
    """Reads the answers of one upstream API. One reader reads one answer."""

    has_begun: bool  # whether an event of an answer has come
    is_done: bool  # whether the upstream declared the end of the answer
    text_mark: bytes  # what stands before the text of an event

    def read(self, event: dict[str, Any]) -> Iterator[Delta]:
        """Yield what an event of a stream says.

        Raises RefusedError or UpstreamServiceError for a failure that it reports.
        """

    def whole(self, answer: dict[str, Any]) -> Iterator[Delta]:
        """Yield what a whole answer says. Raises RefusedError, UpstreamServiceError."""


class Writer:
    """Writes an answer for a client of one API.

    `text_mark` stands before the text of an event; it is empty if events of text differ in more.
    What has been used stands in the context.
    """

    text_mark: bytes

    def __init__(self, context: ChatContext) -> None:
        self.context = context

    def write(self, delta: Delta) -> Iterator[bytes]:
        """Yield the framed events of a stream that a delta makes."""
        raise NotImplementedError

    def end(self) -> Iterator[bytes]:
        """Yield the events that complete a stream."""
        raise NotImplementedError

    def failed(self, error: BaseException) -> bytes | None:
        """Return the events that end a failed stream; None for the event of the format."""
        return None

    def add(self, delta: Delta) -> None:
        """Take a delta of a whole answer."""
        for _ in self.write(delta):
            pass

    def whole(self) -> dict[str, Any]:
        """Return what was added as a whole answer."""
        raise NotImplementedError


def length_of(delta: Delta) -> int:
    """Return how many characters a delta adds to an answer."""
    match delta:
        case Text(text=text) | Thinking(text=text) | CallArguments(text=text):
            return len(text)
        case CallStart(name=name):
            return len(name)
    return 0
