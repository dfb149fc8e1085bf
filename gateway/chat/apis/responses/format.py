"""The errors of the Responses API: OpenAI's, and in a stream the event `response.failed`."""

from __future__ import annotations

from typing import Any

from gateway.chat.apis.base import upstream_error
from gateway.chat.apis.openai.format import OpenAIFormat
from gateway.chat.errors import (
    AFTER_FIRST_CHUNK,
    TOO_MANY_REQUESTS,
    Failure,
    Table,
    look_up,
)
from gateway.chat.failures import is_too_long

TOO_LONG = "context_length_exceeded"
OVERLOADED = frozenset({503, 529})


class ResponsesFormat(OpenAIFormat):
    """OpenAI's errors. A stream that has begun ends with an event of its own."""

    def failure(self, table: Table, error: BaseException, request_id: str) -> Failure:
        status, body, headers = super().failure(table, error, request_id)
        if is_too_long(error):
            body["error"]["code"] = TOO_LONG
        return status, body, headers


RESPONSES = ResponsesFormat()


def error_of(error: BaseException, request_id: str) -> dict[str, Any]:
    """Return the `error` of a response that failed in its stream, with a code that clients know."""
    status, message = look_up(AFTER_FIRST_CHUNK, error, request_id)
    if is_too_long(error):
        return {"code": TOO_LONG, "message": str(error)}
    upstream = upstream_error(error)
    if given := upstream.fields.get("code"):
        code = given
    elif upstream.status == TOO_MANY_REQUESTS:
        code = "rate_limit_exceeded"
    elif upstream.status in OVERLOADED:
        code = "server_is_overloaded"
    else:
        code = "invalid_prompt" if status == 400 else "server_error"
    return {"code": code, "message": message}
