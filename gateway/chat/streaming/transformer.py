"""What changes an upstream's events into the client's. Pure."""

from __future__ import annotations

from typing import ClassVar

from gateway.chat.core.chunks import Template
from gateway.chat.sse import DONE
from gateway.chat.tokens import Usage

EVENT_END = b"\n\n"


class Transformer:
    """The state of one stream: feed() takes the upstream's events, flush() returns the client's.

    `chunks` counts the events that are part of an answer, `characters` those of its text.
    """

    START: ClassVar[bytes] = b""  # what stands before each event
    # Whether `[DONE]` completes an answer; without, one that lacks its reason to end was cut off.
    DONE_COMPLETES: ClassVar[bool] = True

    usage: Usage | None = None
    characters = 0
    chunks = 0
    is_done = False  # the upstream has declared the end of the stream, and nothing counts any more
    _has_finished = False
    # Of most of the events, which need not be parsed.
    _template: Template | None = None

    def __init__(self) -> None:
        self._ready: list[bytes] = []  # events without their ends

    def feed(self, payloads: list[bytes]) -> None:
        """Transform events; those before a fault can still be flushed.

        Raises InvalidRequestError, UpstreamServiceError.
        """
        for payload in payloads:
            if self.is_done:
                return
            template = self._template
            match = None if template is None else template.apply(payload)
            if match is not None:
                event, length = match
                self._ready.append(event)
                self.characters += length
                self.chunks += 1
            elif payload == DONE:
                self.is_done = True
            else:
                self._transform(payload)

    def _transform(self, payload: bytes) -> None:
        raise NotImplementedError

    @property
    def has_finished(self) -> bool:
        """True if the answer has its finish reason, or all of them."""
        return self._has_finished

    @property
    def goes_on(self) -> bool:
        """True if text is to be expected."""
        return not self.has_finished

    @property
    def is_complete(self) -> bool:
        """True if a stream that ends now is complete."""
        return (self.is_done and self.DONE_COMPLETES) or self.has_finished

    def flush(self) -> bytes:
        """Return the events that are ready to be sent, framed."""
        if not self._ready:
            return b""
        start = self.START
        events = start + (EVENT_END + start).join(self._ready) + EVENT_END
        self._ready.clear()
        return events

    def flush_all(self) -> bytes:
        """Return the events that are ready, and what was held back."""
        return self.flush()

    def end(self) -> bytes:
        """Return the events that end a complete stream."""
        return self.flush_all()
