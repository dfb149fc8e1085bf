"""What a request does with an endpoint: an operation, in the shape of one API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from gateway.chat.capabilities import CAPABILITIES, Need, require
from gateway.chat.context import ChatContext
from gateway.chat.errors import UnsupportedRequestError
from gateway.chat.request import ModelRequest
from gateway.chat.streaming.opened import OpenedStream
from gateway.chat.upstreams.base import Job, Upstream
from gateway.configuration.shapes import ModelEntry


class Operation:
    """Carries a request out at one target. Without state: `context` is the request's."""

    action: ClassVar[str]  # in policy decisions
    inference_type: ClassVar[str] = "chat"
    can_stream: ClassVar[bool] = True
    is_budgeted: ClassVar[bool] = True  # False: it costs nothing
    # Whether `ModelRequest.raw` keeps the body as it was sent, and the headers with this
    # prefix that an upstream may get.
    keeps_raw: ClassVar[bool] = False
    passed_headers: ClassVar[str] = ""
    capabilities: ClassVar[Mapping[str, Need]] = CAPABILITIES

    async def check(self, endpoint: ModelEntry, request: ModelRequest) -> None:
        """Raise as require() does for a request that an endpoint cannot serve."""
        kind, needs = self.inference_type, self.capabilities
        require(endpoint, kind, request, needs)

    async def complete(
        self, upstream: Upstream, job: Job, context: ChatContext
    ) -> bytes:
        """Return the body for the client, and note its usage. Raises as Upstream's methods do."""
        raise NotImplementedError

    async def open(
        self, upstream: Upstream, job: Job, context: ChatContext
    ) -> OpenedStream:
        """Return a stream that nothing has been read of. Raises as Upstream's methods do."""
        raise UnsupportedRequestError("streaming")
