"""One call of one target, and what every kind of upstream can do."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from gateway.chat.context import ChatContext
from gateway.configuration.shapes import ModelEntry


@dataclass(frozen=True, slots=True)
class Call:
    """What the target of a request gets: JSON for an API, at its path below a base URL."""

    context: ChatContext
    api: str
    path: str
    body: bytes

    @property
    def is_native(self) -> bool:
        """True if the client speaks the API, too."""
        return self.api == self.context.operation.api


class Upstream(Protocol):
    """A kind of model server.

    Both methods raise UpstreamServiceError if the server failed, RefusedError if it
    refused the request, UnsupportedRequestError for what it cannot do.
    """

    def apis(self, entry: ModelEntry) -> frozenset[str]:
        """Return the names of the APIs that the servers of an entry speak."""

    async def post(self, call: Call) -> bytes:
        """Return the body of an answer."""

    def stream(self, call: Call) -> AsyncGenerator[list[bytes]]:
        """Yield the events as they come; closing the generator ends the call at once.

        A list holds what arrived together; an empty list means a part of an event.
        """
