"""/mcp: an MCP server (streamable HTTP, stateless) over one account's recordings."""

from __future__ import annotations

import orjson
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ParseError
from rest_framework.request import Request

from recording.throttles import MCPThrottle
from recording.viewsets import RecordingViewSet


class MCPViewSet(RecordingViewSet):
    """Takes JSON-RPC messages, one in each POST; the body is checked as the API's are."""

    throttle_classes = (MCPThrottle,)

    @extend_schema(exclude=True)  # tools/list describes it
    def answer(self, request: Request) -> HttpResponse:
        try:
            # As it was parsed: the package reads no JSON that the API would refuse.
            body = orjson.dumps(self.get_body())
        except TypeError as error:
            raise ParseError("The body is nested too deeply.") from error
        # Here, so that only processes that need the package `mcp` load it.
        from recording.mcp import server

        return server.answer(request, body)
