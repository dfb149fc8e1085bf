"""/mcp: an MCP server (streamable HTTP, stateless) over one account's recordings."""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.exceptions import ParseError
from rest_framework.request import Request

from recording.library.search.limits import deadline
from recording.throttles import AccountThrottle
from recording.viewsets import RecordingViewSet
from webhooks_core.web.json_schema import (
    AND_OTHERS,
    INTEGER,
    STRING,
    described,
    object_of,
    ref,
)

LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
TOOLS = {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}
MESSAGE = {"type": "object", "additionalProperties": {}}
MESSAGES = {"anyOf": [MESSAGE, {"type": "array", "items": MESSAGE}]}
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
    (200, "application/json"): MESSAGES,
    (200, "text/event-stream"): object_of(data=described("A message as JSON.", STRING)),
    202: None,
    400: {"anyOf": [REFUSED, ref("RecordingError")]},
    404: REFUSED,
    406: REFUSED,
}

# The only version with batches, and the one that a client without the header speaks.
VERSION_WITH_BATCHES = "2025-03-26"
MAX_BATCH = 10  # messages; they share a turn and the deadline of a search


class MCPViewSet(RecordingViewSet):
    """Takes JSON-RPC messages; the body is checked as the API's are."""

    throttles = {"answer": partial(AccountThrottle, "mcp")}

    @extend_schema(
        operation_id="recording_mcp",
        tags=["Recording MCP"],
        summary="Send a message to the MCP server",
        description="JSON-RPC 2.0, as the Model Context Protocol defines it for streamable HTTP."
        " `tools/list` describes the tools. A notification gets 202 without a body. Only clients"
        f" of version {VERSION_WITH_BATCHES} may send several messages at once.",
        request={"application/json": MESSAGES},
        responses=RESPONSES,
        examples=[
            OpenApiExample("request", LIST_TOOLS, request_only=True),
            OpenApiExample("response", TOOLS, response_only=True),
        ],
    )
    def answer(self, request: Request) -> HttpResponse:
        body = self.parsed_body()
        version = request.headers.get("MCP-Protocol-Version", VERSION_WITH_BATCHES)
        if isinstance(body, list) and version == VERSION_WITH_BATCHES:
            return self._answer_batch(request, body)
        message = _serialized(self.get_body())
        # Here, so that only processes that need the package `mcp` load it.
        from recording.mcp import server

        return server.answer(request, message)

    def _answer_batch(self, request: Request, batch: list[Any]) -> HttpResponse:
        """Answer each message; nothing is done if one is malformed or over the rate."""
        if not 0 < len(batch) <= MAX_BATCH:
            raise ParseError(f"A batch must have 1 to {MAX_BATCH} messages.")
        if not all(isinstance(each, dict) for each in batch):
            raise ParseError("Each message of a batch must be a JSON object.")
        if any(each.get("method") == "initialize" for each in batch):
            raise ParseError("initialize must not be part of a batch.")
        messages = [_serialized(each) for each in batch]
        for _ in messages[1:]:
            self.check_throttles(request)
        from recording.mcp import server

        with deadline():
            responses = [
                server.answer(request, each, may_be_event=False) for each in messages
            ]
        answers = [each for each in responses if each.status_code != 202]
        if not answers or answers[0].status_code == 406:
            return responses[0]
        body = b"[" + b",".join(each.content for each in answers) + b"]"
        return HttpResponse(body, content_type="application/json")


def _serialized(message: dict[str, Any]) -> bytes:
    """Return a message as it was parsed: the package reads no JSON that the API would refuse."""
    if "id" not in message:
        # It has no effect; the package would log some as crashes.
        message.pop("params", None)
    elif type(message["id"]) not in {int, str}:
        # The package would take it for a notification, and nothing would answer.
        raise ParseError("id must be a string or an integer of at most 64 bits.")
    try:
        return orjson.dumps(message)
    except TypeError as error:
        raise ParseError("The body is nested too deeply.") from error
