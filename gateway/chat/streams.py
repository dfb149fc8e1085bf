"""The stream of one answer: an upstream's events become the client's.

A stream knows what has been used, and whether it is complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import ClassVar

from gateway.chat.apis.base import ErrorFormat
from gateway.chat.apis.deltas import (
    Delta,
    Finish,
    Reader,
    Text,
    Tokens,
    Writer,
    length_of,
)
from gateway.chat.apis.openai import chunks
from gateway.chat.apis.openai.chunks import Template
from gateway.chat.errors import (
    ChatError,
    InvalidRequestError,
    InvalidValueError,
    UpstreamServiceError,
)
from gateway.chat.sse import DONE
from gateway.chat.tokens import Usage
from webhooks_core.network.deadlines import NEVER, Deadline, of_running_loop

EVENT_END = b"\n\n"


class Stream:
    """The state of one stream: feed() takes the upstream's events, flush() returns the client's.

    `events` are the upstream's. `log`, if there is one, gets every delta. `done_completes`: `[DONE]`
    completes an answer; without, one that lacks its reason to end was cut off.
    """

    START: ClassVar[bytes] = b""  # what stands before each event
    events: AsyncGenerator[list[bytes]]

    def __init__(
        self,
        reader: Reader,
        log: Callable[[Delta], None] | None,
        *,
        done_completes: bool,
    ) -> None:
        self.reader, self._log, self._done_completes = reader, log, done_completes
        self.fault: ChatError | None = None  # arrived with the first chunk, after it
        self.usage: Usage | None = None
        self.characters = 0
        self.has_finished = False
        # Of most of the events, which need not be parsed.
        self.template: Template | None = None
        self._ready: list[bytes] = []  # events without their ends

    async def read_first_chunk(self) -> None:
        """Wait for the first chunk: until then a failure is an ordinary error.

        Raises InvalidValueError: the upstream refused the request. UpstreamServiceError.
        """
        try:
            while not self.reader.has_begun:
                payloads = await anext(self.events, None)
                if payloads is None:
                    raise UpstreamServiceError(
                        "the stream ended before its first chunk"
                    )
                if self.reader.is_done:
                    raise UpstreamServiceError("the stream has no chunk")
                self.feed(payloads)
        except ChatError as error:
            if self.reader.has_begun:
                self.fault = error
            elif isinstance(error, InvalidRequestError):
                refusal = InvalidValueError(*error.args)
                refusal.upstream = error.upstream
                raise refusal from error
            else:
                raise

    def feed(self, payloads: list[bytes]) -> None:
        """Take events; those before a fault can still be flushed.

        Raises InvalidRequestError, UpstreamServiceError.
        """
        for payload in payloads:
            if self.reader.is_done:
                return
            template = self.template
            match = None if template is None else template.apply(payload)
            if match is not None:
                event, length = match
                self._ready.append(event)
                self.characters += length
            elif payload == DONE:
                self.reader.is_done = True
            else:
                self._take(payload)

    def _take(self, payload: bytes) -> None:
        """Take an event that no template knows."""
        raise NotImplementedError

    def note(self, delta: Delta) -> None:
        """Count what a delta adds."""
        if isinstance(delta, Tokens):
            self.usage = delta.usage.at_least(self.usage)
        elif isinstance(delta, Finish):
            self.has_finished = True
        else:
            self.characters += length_of(delta)
        if self._log is not None:
            self._log(delta)

    def learn(self, template: Template | None) -> None:
        """Use a template, unless every delta is to be logged."""
        self.template = template if self._log is None else None

    @property
    def is_complete(self) -> bool:
        """True if a stream that ends now is complete."""
        return (self.reader.is_done and self._done_completes) or self.has_finished

    def flush(self) -> bytes:
        """Return the events that are ready to be sent, framed."""
        if not self._ready:
            return b""
        start = self.START
        events = start + (EVENT_END + start).join(self._ready) + EVENT_END
        self._ready.clear()
        return events

    def end(self) -> bytes:
        """Return the events that end a complete stream."""
        return self.flush()

    def failed(
        self, error: BaseException, request_id: str, api_format: ErrorFormat
    ) -> bytes:
        """Return what is ready, and the event that ends a failed stream."""
        return self.flush() + api_format.error_event(error, request_id)


class TranslatedStream(Stream):
    """A stream that a reader reads and a writer writes."""

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        log: Callable[[Delta], None] | None,
        *,
        done_completes: bool,
    ) -> None:
        super().__init__(reader, log, done_completes=done_completes)
        self.writer = writer

    def _take(self, payload: bytes) -> None:
        self.template, before, last = None, len(self._ready), None
        for delta in self.reader.read(chunks.parse(payload)):
            self.note(delta)
            self._ready += self.writer.write(delta)
            last = delta
        is_text = isinstance(last, Text) and len(self._ready) == before + 1
        if is_text and (mark := self.writer.text_mark):
            event = self._ready[before]
            self.learn(Template.learn(payload, event, self.reader.text_mark, mark))

    def flush(self) -> bytes:
        """Return the events that are ready; a writer frames its own."""
        events = b"".join(self._ready)
        self._ready.clear()
        return events

    def end(self) -> bytes:
        # Most texts have not passed through the writer.
        self.writer.characters = self.characters
        self._ready += self.writer.end()
        return self.flush()

    def failed(
        self, error: BaseException, request_id: str, api_format: ErrorFormat
    ) -> bytes:
        event = self.writer.failed(error, request_id)
        if event is None:
            event = api_format.error_event(error, request_id)
        return self.flush() + event


class StreamTimeout(Deadline):
    """Ends a block with TimeoutError when a part does not come in time.

    A time-out around every read would cost more than the read. Each part may be read by
    another task.
    """

    __slots__ = ("_end", "_loop")

    def __init__(self, total_s: float | None, *, elapsed_s: float) -> None:
        super().__init__(of_running_loop(), NEVER)
        self._loop = self._deadlines.loop
        left = NEVER if total_s is None else total_s - elapsed_s
        self._end = self._loop.time() + left

    def start(self, seconds: float) -> None:
        """Expect a part of this task within so many seconds, and within the total time."""
        # Without the loop it would ask the system for the process id every time.
        if task := asyncio.current_task(self._loop):
            self._task = task
        self.until = min(self._loop.time() + seconds, self._end)

    def stop(self) -> None:
        """Expect nothing until the next start()."""
        self.until = NEVER
