"""A stream of an upstream, up to its first chunk: until then its failure is an ordinary error."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from gateway.chat.core import off_loop
from gateway.chat.core.context import ChatContext
from gateway.chat.core.errors import (
    ChatError,
    InvalidRequestError,
    InvalidValueError,
    UpstreamServiceError,
)
from gateway.chat.policies.streams import StreamGuard
from gateway.chat.streaming.transformer import Transformer


@dataclass(slots=True)
class OpenedStream:
    """A stream whose first chunk has arrived; `fault` arrived with it, after it."""

    transformer: Transformer
    events: AsyncGenerator[list[bytes]]
    fault: ChatError | None = None
    # How the upstream's events are written, and the rules that apply to them, if any.
    shape: str = "chunks"
    guard: StreamGuard | None = None

    def note_tokens(self, context: ChatContext) -> None:
        """Note what has been used: of the text that has come, rules may hold back some."""
        read = 0 if self.guard is None else self.guard.characters
        context.usage = self.transformer.usage or context.usage
        context.completion_characters = max(read, self.transformer.characters)

    async def read_first_chunk(self) -> None:
        """Raises as Upstream's methods do: before the first chunk, a refusal is an invalid value."""
        try:
            await self._read_first_chunk()
        except InvalidRequestError as error:
            refusal = InvalidValueError(*error.args)
            refusal.upstream = error.upstream
            raise refusal from error

    async def _read_first_chunk(self) -> None:
        transformer = self.transformer
        while transformer.chunks == 0:
            payloads = await anext(self.events, None)
            if payloads is None:
                self.end()
                if transformer.chunks:
                    return
                raise UpstreamServiceError("the stream ended before its first chunk")
            try:
                await self.feed(payloads)
            except ChatError as error:
                if transformer.chunks == 0:
                    raise
                self.fault = error
            if transformer.is_done and transformer.chunks == 0:
                raise UpstreamServiceError("the stream has no chunk")

    async def feed(self, payloads: list[bytes]) -> None:
        """Transform events. Raises as Transformer.feed() does, and PolicyDeniedError."""
        size = off_loop.size_of(payloads)
        await off_loop.run(self._feed, payloads, size=size)

    def _feed(self, payloads: list[bytes]) -> None:
        if self.guard is not None:
            payloads = self.guard.feed(payloads)
        self.transformer.feed(payloads)

    def end(self) -> None:
        """Transform what rules hold back at the end of the stream. Raises as feed() does."""
        if self.guard is not None and (held := self.guard.end()):
            self.transformer.feed(held)
