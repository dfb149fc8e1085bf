"""Failures as Anthropic writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gateway.chat.apis.base import Format, upstream_error
from gateway.chat.errors import (
    NOTHING,
    Failure,
    OverBudgetError,
    Table,
    UpstreamError,
)
from gateway.chat.failures import NO_CREDIT, is_too_long
from gateway.chat.sse import frame
from gateway.configuration.shapes import ModelEntry

# What the header of this name says: the client speaks this API.
VERSION_HEADER = "anthropic-version"
EPOCH = "1970-01-01T00:00:00Z"  # the API's value for a date that is not known
BILLING = "billing_error"
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: BILLING,
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
STATUSES = {kind: status for status, kind in ERROR_TYPES.items()}
# OpenAI's finish reasons as the API calls them.
STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
# OpenAI's choices of a tool, too.
TOOL_CHOICES = {"auto": "auto", "required": "any", "none": "none"}
# The status of an upstream whose account is used up, until its operator pays.
NO_CREDIT_STATUS = 402
# Clients shorten a conversation that is too long for the model when they read this.
TOO_LONG = "prompt is too long"


class MessagesFormat(Format):
    """Errors as `{"type": "error", "error": {type, message}}`, and `ping` in silent streams.

    What an upstream of the same API says about an error passes with its status.
    """

    keep_alive = frame(b'{"type": "ping"}', b"ping")
    event_name = b"error"

    def error(
        self, status: int, detail: Any, upstream: UpstreamError = NOTHING
    ) -> dict[str, Any]:
        other = ERROR_TYPES[400 if status < 500 else 500]
        message = detail if isinstance(detail, str) else " ".join(map(str, detail))
        kind = ERROR_TYPES.get(status, other)
        return {"type": "error", "error": {"type": kind, "message": message}}

    def failure(self, table: Table, error: BaseException, request_id: str) -> Failure:
        upstream = upstream_error(error)
        if upstream.response is not None:
            return upstream.response
        status, body, headers = super().failure(table, error, request_id)
        headers["request-id"], inner = request_id, body["error"]
        names = {upstream.fields.get("code"), upstream.fields.get("type")}
        has_no_credit = upstream.status == NO_CREDIT_STATUS or bool(NO_CREDIT & names)
        if has_no_credit or isinstance(error, OverBudgetError):
            message = upstream.reason or inner["message"]
            body["error"] = {"type": BILLING, "message": message}
            headers["x-should-retry"] = "false"
        elif is_too_long(error) and TOO_LONG not in inner["message"]:
            inner["message"] = f"{TOO_LONG}: {inner['message']}"
        return status, body, headers

    def models(self, endpoints: Sequence[ModelEntry]) -> dict[str, Any]:
        models = [*map(self.model, endpoints)]
        first, last = (models[n]["id"] if models else None for n in (0, -1))
        return {"data": models, "has_more": False, "first_id": first, "last_id": last}

    def model(self, endpoint: ModelEntry) -> dict[str, Any]:
        return {
            "type": "model",
            "id": endpoint.name,
            "display_name": endpoint.name,
            "created_at": EPOCH,
            "lifecycle": "active",
        }


MESSAGES = MessagesFormat()
