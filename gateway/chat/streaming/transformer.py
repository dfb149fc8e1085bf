"""The protocol of what changes an upstream's events into the client's."""

from __future__ import annotations

from typing import Protocol

from gateway.chat.core.usage_tokens import Usage


class Transformer(Protocol):
    """The state of one stream: feed() takes the upstream's events, flush() returns the client's.

    `chunks` counts the events that are part of an answer, `characters` those of its text.
    """

    usage: Usage | None
    characters: int
    chunks: int
    is_done: bool  # the upstream has declared the end of the stream, and nothing counts any more

    def feed(self, payloads: list[bytes]) -> None:
        """Transform events; those before a fault can still be flushed.

        Raises InvalidRequestError, UpstreamServiceError.
        """

    @property
    def has_finished(self) -> bool:
        """True if the answer has its finish reason, or all of them."""

    @property
    def goes_on(self) -> bool:
        """True if text is to be expected."""

    @property
    def is_complete(self) -> bool:
        """True if a stream that ends now is complete."""

    def flush(self) -> bytes:
        """Return the events that are ready to be sent, framed."""

    def flush_all(self) -> bytes:
        """Return the events that are ready, and what was held back."""

    def end(self) -> bytes:
        """Return the events that end a complete stream."""
