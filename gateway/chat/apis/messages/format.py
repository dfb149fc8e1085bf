"""Failures as Anthropic writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway import json
from gateway.chat import errors
from gateway.chat.apis.base import (
    TOO_MANY_REQUESTS,
    ErrorFormat,
    pause_header,
    upstream_error,
)
from gateway.chat.failures import NO_CREDIT, is_too_long
from gateway.chat.sse import frame
from webhooks_core.web.errors import ApiError

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
STATUSES = {
    "overloaded_error": 529,
    **{
        kind: status for status, kind in ERROR_TYPES.items() if status not in (503, 529)
    },
}
# Statuses of an upstream that last until the operator does something.
NO_CREDIT_STATUS = 402
LASTING = frozenset({401, NO_CREDIT_STATUS, 403, 404})
# Clients shorten a conversation that is too long for the model when they read this.
TOO_LONG = "prompt is too long"


class MessagesFormat(ErrorFormat):
    """Errors as `{"type": "error", "error": {type, message}}`, and `ping` in silent streams.

    What an upstream of the same API says about an error passes with its status.
    """

    keep_alive = frame(b'{"type": "ping"}', b"ping")

    def error(self, status: int, detail: Any) -> dict[str, Any]:
        other = ERROR_TYPES[400 if status < 500 else 500]
        message = detail if isinstance(detail, str) else " ".join(map(str, detail))
        return _error(ERROR_TYPES.get(status, other), message)

    def refusal(self, error: ApiError) -> tuple[Any, Mapping[str, str]]:
        if isinstance(error, errors.OverBudgetError):
            headers = {**error.headers, "x-should-retry": "false"}
            return _error(BILLING, str(error.detail)), headers
        return super().refusal(error)

    def headers(self, request_id: str) -> dict[str, str]:
        return {"request-id": request_id}

    def failure(
        self, table: errors.Table, error: BaseException, request_id: str
    ) -> tuple[int, Any, dict[str, str]]:
        table = errors.naming(table, error)
        status, detail = errors.look_up(table, error, request_id)
        upstream, headers = upstream_error(error), self.headers(request_id)
        if upstream.response is not None:
            return upstream.response
        if upstream.status == TOO_MANY_REQUESTS:
            status = TOO_MANY_REQUESTS
            headers |= pause_header(upstream.retry_after)
        has_no_credit = upstream.status == NO_CREDIT_STATUS or bool(
            NO_CREDIT & {upstream.fields.get("code"), upstream.fields.get("type")}
        )
        if upstream.status in LASTING or has_no_credit:
            headers["x-should-retry"] = "false"
        if has_no_credit:
            return status, _error(BILLING, upstream.reason or str(detail)), headers
        if is_too_long(error):
            detail = f"{TOO_LONG}: {detail}" if TOO_LONG not in str(detail) else detail
        return status, self.error(status, detail), headers

    def error_event(self, error: BaseException, request_id: str) -> bytes:
        status, text = errors.look_up(errors.AFTER_FIRST_CHUNK, error, request_id)
        response = upstream_error(error).response
        body = json.dumps(self.error(status, text)) if response is None else response[1]
        return frame(body, b"error")


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


MESSAGES = MessagesFormat()
