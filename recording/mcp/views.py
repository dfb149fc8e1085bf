"""/mcp: an MCP server (streamable HTTP, stateless) over one account's recordings."""

from __future__ import annotations

import orjson
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.exceptions import ParseError
from rest_framework.request import Request

from recording.throttles import MCPThrottle
from recording.viewsets import RecordingViewSet
from webhooks_core.api.json_schema import (
    AND_OTHERS,
    INTEGER,
    STRING,
    described,
    object_of,
    ref,
)

LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
TOOLS = {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}
# Of a message that the MCP server refuses; what comes before it refuses as the API does.
REFUSED = object_of(
    ["jsonrpc", "error"],
    jsonrpc=described("Always `2.0`.", {"const": "2.0"}),
    id=described("The id of the message, or null.", {}),
    error=described(
        "The error.",
        object_of(
            code=described("A code of JSON-RPC or MCP.", INTEGER),
            message=described("What is wrong, for people."),
        )
        | AND_OTHERS,
    ),
)
RESPONSES = {
    (200, "application/json"): OpenApiTypes.OBJECT,
    (200, "text/event-stream"): object_of(data=described("A message as JSON.", STRING)),
    202: None,
    400: {"anyOf": [REFUSED, ref("RecordingError")]},
    406: REFUSED,
}


class MCPViewSet(RecordingViewSet):
    """Takes JSON-RPC messages, one in each POST; the body is checked as the API's are."""

    throttle_classes = (MCPThrottle,)

    @extend_schema(
        operation_id="recording_mcp",
        tags=["Recording MCP"],
        summary="Send a message to the MCP server",
        description="JSON-RPC 2.0, as the Model Context Protocol defines it for streamable HTTP."
        " `tools/list` describes the tools. A notification gets 202 without a body.",
        request=OpenApiTypes.OBJECT,
        responses=RESPONSES,
        examples=[
            OpenApiExample("request", LIST_TOOLS, request_only=True),
            OpenApiExample("response", TOOLS, response_only=True),
        ],
    )
    def answer(self, request: Request) -> HttpResponse:
        message = self.get_body()
        if "id" not in message:
            # It has no effect; the package would log some as crashes.
            message.pop("params", None)
        elif type(message["id"]) not in {int, str}:
            # The package would take it for a notification, and nothing would answer.
            raise ParseError("id must be a string or an integer of at most 64 bits.")
        try:
            # As it was parsed: the package reads no JSON that the API would refuse.
            body = orjson.dumps(message)
        except TypeError as error:
            raise ParseError("The body is nested too deeply.") from error
        # Here, so that only processes that need the package `mcp` load it.
        from recording.mcp import server

        return server.answer(request, body)
