"""The protocol of upstreams, without a vendor."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from gateway.chat.request import ModelRequest
from gateway.configuration.shapes import ModelEntry, Target


@dataclass(frozen=True, slots=True)
class Job:
    """One request to one target."""

    request: ModelRequest
    target: Target
    entry: ModelEntry  # the endpoint of the target
    request_id: str
    # Takes a usage of OpenAI's shape that the server reports before its stream ends.
    report: Callable[[Mapping[str, Any]], None] = lambda _: None
    # Those of the client that an upstream of the request's own shape gets.
    headers: Mapping[str, str] = field(default_factory=dict)
    query: str = ""


class Upstream(Protocol):
    """A kind of model server. Requests and responses have OpenAI's shapes.

    Every method raises UpstreamServiceError if the server failed, InvalidValueError if it
    refused the request, and UnsupportedRequestError for what it cannot do. Closing the
    generator ends the call at once.
    """

    async def complete(self, job: Job) -> bytes:
        """Return the completion as JSON."""

    def stream(self, job: Job) -> AsyncGenerator[list[bytes]]:
        """Yield the chunks as they come, with `[DONE]` if the server sends it.

        A list holds what arrived together; an empty list means a part of an event.
        """

    async def embed(self, job: Job) -> bytes:
        """Return embeddings as JSON."""
