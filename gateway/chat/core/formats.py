"""The two formats of responses: the contract's, and OpenAI's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway import json
from gateway.chat import errors
from gateway.chat.sse import COMMENT, frame
from webhooks_core.web.errors import ApiError

ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
ERROR_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
TOO_MANY_REQUESTS = 429


@dataclass(frozen=True, slots=True)
class ApiFormat:
    """How streams and errors are written.

    The contract omits fields without a value, and every event is JSON. OpenAI's clients
    expect chunks as they are, `[DONE]` at the end, and errors as an object.
    """

    is_openai: bool
    keep_alive: bytes = COMMENT  # what a silent stream sends

    def error(self, status: int, detail: Any) -> dict[str, Any]:
        """Return the body of an error."""
        return openai_error(status, detail) if self.is_openai else {"detail": detail}

    def refusal(self, error: ApiError) -> tuple[Any, Mapping[str, str]]:
        """Return body and headers for a request that is refused before a call."""
        return self.error(error.status_code, error.detail), error.headers

    def headers(self, request_id: str) -> dict[str, str]:
        """Return what the headers of a failure have beside the usual ones."""
        return {}

    def failure(
        self, table: errors.Table, error: BaseException, request_id: str
    ) -> tuple[int, Any, dict[str, str]]:
        """Return status, body and headers for a failed call, by one of the tables.

        OpenAI's clients also get what the upstream said for programs to read.
        """
        status, detail = errors.look_up(table, error, request_id)
        if not self.is_openai:
            return status, {"detail": detail}, {}
        upstream, headers = upstream_error(error), {}
        if upstream.status == TOO_MANY_REQUESTS:
            status = TOO_MANY_REQUESTS
            if upstream.retry_after:
                headers["Retry-After"] = upstream.retry_after
        return status, openai_error(status, detail, upstream), headers

    def error_event(self, error: BaseException, request_id: str) -> bytes:
        """Return the last event of a stream that fails after it began."""
        if not self.is_openai:
            return frame(json.dumps(errors.error_chunk(error, request_id)))
        status, text = errors.look_up(errors.AFTER_FIRST_CHUNK, error, request_id)
        return frame(json.dumps(openai_error(status, text, upstream_error(error))))


CONTRACT, OPENAI = ApiFormat(is_openai=False), ApiFormat(is_openai=True)


def upstream_error(error: BaseException) -> errors.UpstreamError:
    return getattr(error, "upstream", errors.ChatError.upstream)


def openai_error(
    status: int, detail: Any, upstream: errors.UpstreamError = errors.ChatError.upstream
) -> dict[str, Any]:
    """Return an error in OpenAI's shape, with what an upstream said in place of our own."""
    other_type = "invalid_request_error" if status < 500 else "server_error"
    message = detail if isinstance(detail, str) else " ".join(map(str, detail))
    is_model = status == 404 and detail == str(errors.EndpointNotFoundError())
    return {
        "error": {
            "message": message,
            "type": ERROR_TYPES.get(status, other_type),
            "param": "model" if is_model else None,
            "code": "model_not_found" if is_model else ERROR_CODES.get(status),
            **upstream.fields,
        }
    }
