"""One call of one target, and what every kind of upstream can do."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from gateway.chat.context import ChatContext
from gateway.configuration.shapes import ModelEntry, Target


@dataclass(frozen=True, slots=True)
class Call:
    """A request to a target of an endpoint."""

    context: ChatContext
    entry: ModelEntry
    target: Target


@dataclass(frozen=True, slots=True)
class Sent:
    """What is posted: JSON for an API, at its path below a base URL.

    `is_native`: the client speaks this API, too.
    """

    api: str
    path: str
    body: bytes
    is_native: bool


class Upstream(Protocol):
    """A kind of model server.

    Both methods raise UpstreamServiceError if the server failed, InvalidValueError if it
    refused the request, UnsupportedRequestError for what it cannot do.
    """

    def apis(self, entry: ModelEntry) -> frozenset[str]:
        """Return the names of the APIs that the servers of an entry speak."""

    async def post(self, call: Call, sent: Sent) -> bytes:
        """Return the body of an answer."""

    def stream(self, call: Call, sent: Sent) -> AsyncGenerator[list[bytes]]:
        """Yield the events as they come; closing the generator ends the call at once.

        A list holds what arrived together; an empty list means a part of an event.
        """
