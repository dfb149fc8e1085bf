"""The errors of the Responses API: OpenAI's, and in a stream the event `response.failed`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.chat import errors
from gateway.chat.core import failures
from gateway.chat.core.formats import TOO_MANY_REQUESTS, ApiFormat, upstream_error
from gateway.chat.http_messages import EVENT_STREAM

TOO_LONG = "context_length_exceeded"
OVERLOADED = frozenset({503, 529})


# Ends a stream with an error and its status: returns what is ready, and `response.failed`.
Fail = Callable[[Mapping[str, Any], int], bytes]


@dataclass(frozen=True, slots=True)
class ResponsesFormat(ApiFormat):
    """OpenAI's errors. `fail` ends the stream of the request, once there is one."""

    is_openai: bool = True
    fail: Fail | None = None

    def failure(
        self, table: errors.Table, error: BaseException, request_id: str
    ) -> tuple[int, Any, dict[str, str]]:
        """Return status, body and headers for a failed call.

        A request that is too long fails inside its stream, as at OpenAI: Codex then shortens
        the conversation, but ends at a status.
        """
        table = errors.naming(table, error)
        is_too_long = failures.is_too_long(error)
        if is_too_long and self.fail is not None:
            event = self.fail(error_of(error, 400, str(error)), 400)
            return 200, event, EVENT_STREAM
        status, body, headers = ApiFormat.failure(self, table, error, request_id)
        if is_too_long:
            body["error"]["code"] = TOO_LONG
        return status, body, headers

    def error_event(self, error: BaseException, request_id: str) -> bytes:
        """Return the last event of a stream that fails after it began."""
        status, text = errors.look_up(errors.AFTER_FIRST_CHUNK, error, request_id)
        if self.fail is None:
            return ApiFormat.error_event(self, error, request_id)
        return self.fail(error_of(error, status, text), status)


RESPONSES = ResponsesFormat()


def error_of(error: BaseException, status: int, message: str) -> dict[str, Any]:
    """Return the `error` of a response that failed, with a code that clients know."""
    upstream = upstream_error(error)
    if failures.is_too_long(error):
        code = TOO_LONG
    elif given := upstream.fields.get("code"):
        code = given
    elif upstream.status == TOO_MANY_REQUESTS:
        code = "rate_limit_exceeded"
    elif upstream.status in OVERLOADED:
        code = "server_is_overloaded"
    else:
        code = "invalid_prompt" if status == 400 else "server_error"
    return {"code": code, "message": message}
