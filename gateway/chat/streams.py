"""The stream of one answer: an upstream's events become the client's.

A stream notes in its context what has been used, and knows whether it is complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from time import monotonic
from typing import ClassVar

import structlog

from gateway.chat.apis.deltas import Delta, Finish, Reader, Text, Writer
from gateway.chat.apis.openai import chunks
from gateway.chat.apis.openai.chunks import Template
from gateway.chat.context import ChatContext
from gateway.chat.errors import (
    ChatError,
    UpstreamServiceError,
)
from gateway.chat.sse import DONE
from webhooks_core.network.deadlines import NEVER, Deadline, of_running_loop

EVENT_END = b"\n\n"
# The wait for the usage after the finish reason, which already completes the stream.
USAGE_WAIT_S = 2.0
# The wait for the end of a stream that has ended, so that its connection can be used again.
CLOSING_S = 0.5
NO_FINISH_REASON = "no finish reason"

log = structlog.stdlib.get_logger(__name__)


class Stream:
    """The state of one stream: feed() takes the upstream's events, flush() returns the client's.

    `events` are the upstream's.
    """

    START: ClassVar[bytes] = b""  # what stands before each event
    events: AsyncGenerator[list[bytes]]

    def __init__(self, context: ChatContext, reader: Reader) -> None:
        self.context, self.reader = context, reader
        self.has_finished = False
        self._fault: ChatError | None = None  # arrived with the first chunk, after it
        # Of most of the events, which need not be parsed.
        self._template: Template | None = None
        self._noted: list[Delta] = []  # of the last event that was parsed
        self._choice = 0  # of its text
        self._ready: list[bytes] = []  # events without their ends

    async def read_first_chunk(self) -> None:
        """Wait for the first chunk: until then a failure is an ordinary error.

        Raises RefusedError, UpstreamServiceError.
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
            if not self.reader.has_begun:
                raise
            self._fault = error

    async def parts(self) -> AsyncGenerator[bytes]:
        """Yield what is ready, then read more, and complete it. Raises TimeoutError, ChatError."""
        context, timeouts = self.context, self.context.endpoint.timeouts
        try:
            yield self.flush()
            if self._fault is not None:
                raise self._fault
            elapsed_s = context.elapsed() - context.called_at_s
            with StreamTimeout(timeouts.total_s, elapsed_s=elapsed_s) as timeout:
                received_at = monotonic()
                while not self.reader.is_done:
                    timeout.start(self._idle_s(received_at))
                    payloads = await anext(self.events, None)
                    timeout.until = NEVER
                    if payloads is None:
                        break
                    self.feed(payloads)
                    if data := self.flush():
                        yield data
                    if payloads:
                        received_at = monotonic()
        except (TimeoutError, ChatError) as error:
            # After the finish reason at most the usage is missing.
            if not self.has_finished:
                raise
            request_id, reason = context.request_id, str(error)[:200]
            log.info("finished stream not ended", request_id=request_id, reason=reason)
        if not self.is_complete:
            raise UpstreamServiceError("the stream ended in the middle")
        if not self.has_finished:
            context.ending = NO_FINISH_REASON
            log.info(NO_FINISH_REASON, request_id=context.request_id)
        yield self.end()

    def _idle_s(self, received_at: float) -> float:
        idle_s = self.context.endpoint.timeouts.idle_s
        if not self.has_finished:
            return idle_s
        return min(idle_s, received_at + USAGE_WAIT_S - monotonic())

    async def read_to_end(self) -> None:
        """Read until the upstream ends the stream, so that its connection can be used again."""
        with suppress(TimeoutError, UpstreamServiceError):
            async with asyncio.timeout(CLOSING_S):
                while await anext(self.events, None) is not None:
                    pass

    def feed(self, payloads: list[bytes]) -> None:
        """Take events; those before a fault can still be flushed.

        Raises RefusedError, UpstreamServiceError.
        """
        for payload in payloads:
            if self.reader.is_done:
                return
            template = self._template
            match = None if template is None else template.apply(payload)
            if match is not None:
                event, text = match
                self._ready.append(event)
                self._note_text(text)
            elif payload == DONE:
                self.reader.is_done = True
            else:
                self._noted.clear()
                self._take(payload)

    def _take(self, payload: bytes) -> None:
        """Take an event that no template knows."""
        raise NotImplementedError

    def note(self, delta: Delta) -> None:
        """Count what a delta adds."""
        self.context.note(delta)
        self._noted.append(delta)
        self.has_finished |= isinstance(delta, Finish)

    def _note_text(self, text: str) -> None:
        """Count a text of an event that differs in it alone from the last that was parsed."""
        if self.context.log is None:
            self.context.completion_characters += len(text)
        else:
            self.context.note(Text(text, choice=self._choice))

    def learn(self, template: Template | None) -> None:
        """Use a template; to log its texts, only that of an event with one text and no more."""
        self._template = template if self.context.log is None else None
        match self._noted:
            case [Text(is_refusal=False, choice=choice)]:
                self._template, self._choice = template, choice

    @property
    def is_complete(self) -> bool:
        """True if a stream that ends now is complete.

        `[DONE]` completes a chat; other answers without their reason to end were cut off.
        """
        is_chat = self.context.operation.api == "chat"
        return self.has_finished or (self.reader.is_done and is_chat)

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

    def failed(self, error: BaseException) -> bytes:
        """Return what is ready, and the event that ends a failed stream."""
        context = self.context
        return self.flush() + context.api_format.error_event(error, context.request_id)


class TranslatedStream(Stream):
    """A stream that a reader reads and a writer writes."""

    def __init__(self, context: ChatContext, reader: Reader, writer: Writer) -> None:
        super().__init__(context, reader)
        self._writer = writer

    def _take(self, payload: bytes) -> None:
        self._template, before, last = None, len(self._ready), None
        for delta in self.reader.read(chunks.parse(payload)):
            self.note(delta)
            self._ready += self._writer.write(delta)
            last = delta
        is_text = isinstance(last, Text) and len(self._ready) == before + 1
        if is_text and (mark := self._writer.text_mark):
            event = self._ready[before]
            self.learn(Template.learn(payload, event, self.reader.text_mark, mark))

    def flush(self) -> bytes:
        """Return the events that are ready; a writer frames its own."""
        events = b"".join(self._ready)
        self._ready.clear()
        return events

    def end(self) -> bytes:
        self._ready += self._writer.end()
        return self.flush()

    def failed(self, error: BaseException) -> bytes:
        event = self._writer.failed(error)
        return super().failed(error) if event is None else self.flush() + event


class StreamTimeout(Deadline):
    """Ends a block with TimeoutError when a part does not come until `until`.

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
