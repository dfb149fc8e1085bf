"""What an upstream is: the one protocol that the gateway knows, and nothing of any vendor."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.chat.model_request import ModelRequest
from gateway.configuration.shapes import Target, Timeouts


@dataclass(frozen=True, slots=True)
class Job:
    """One request to one target."""

    request: ModelRequest
    target: Target
    timeouts: Timeouts
    request_id: str
    ask_usage: bool = True
    # Takes a usage of OpenAI's shape that the server tells before its stream ends.
    report: Callable[[Mapping[str, Any]], None] = lambda _: None


class Upstream(Protocol):
    """A kind of model server. All that goes in and out has OpenAI's shapes.

    Every method raises UpstreamServiceError for the server's trouble, InvalidValueError for
    a request that the server refused, and UnsupportedRequestError for what it cannot do.
    Whoever stops listening closes the generator, which ends the call at once.
    """

    async def complete(self, job: Job) -> bytes:
        """Return the whole completion as JSON."""

    def stream(self, job: Job) -> AsyncGenerator[list[bytes]]:
        """Yield the chunks as they come, `[DONE]` included where the server says it.

        A list holds what arrived together; an empty list says that something did.
        """

    async def embed(self, job: Job) -> bytes:
        """Return embeddings as JSON."""
