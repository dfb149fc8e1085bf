"""A stream of an upstream, up to its first chunk: until then its failure is an ordinary error."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from gateway.chat.context import ChatContext
from gateway.chat.errors import (
    ChatError,
    InvalidRequestError,
    InvalidValueError,
    UpstreamServiceError,
)
from gateway.chat.streaming.transformer import Transformer


@dataclass(slots=True)
class OpenedStream:
    """A stream whose first chunk has arrived; `fault` arrived with it, after it."""

    transformer: Transformer
    events: AsyncGenerator[list[bytes]]
    fault: ChatError | None = None

    def note_tokens(self, context: ChatContext) -> None:
        """Note what has been used."""
        context.usage = self.transformer.usage or context.usage
        context.completion_characters = self.transformer.characters

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
                raise UpstreamServiceError("the stream ended before its first chunk")
            try:
                transformer.feed(payloads)
            except ChatError as error:
                if transformer.chunks == 0:
                    raise
                self.fault = error
            if transformer.is_done and transformer.chunks == 0:
                raise UpstreamServiceError("the stream has no chunk")
