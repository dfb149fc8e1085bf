"""Failures as OpenAI writes them, and as the contract does."""

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
from gateway.chat.errors import ChatError, EndpointNotFoundError, UpstreamError
from gateway.chat.sse import frame

ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
ERROR_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


class ContractFormat(ErrorFormat):
    """`{"detail": …}`, and the contract's error chunk."""

    def error(self, status: int, detail: Any) -> dict[str, Any]:
        return {"detail": detail}

    def error_event(self, error: BaseException, request_id: str) -> bytes:
        return frame(json.dumps(errors.error_chunk(error, request_id)))


class OpenAIFormat(ErrorFormat):
    """OpenAI's object. Its clients also get what the upstream said for programs to read."""

    def error(self, status: int, detail: Any) -> dict[str, Any]:
        return openai_error(status, detail)

    def failure(
        self, table: errors.Table, error: BaseException, request_id: str
    ) -> tuple[int, Any, dict[str, str]]:
        status, detail = errors.look_up(table, error, request_id)
        upstream, headers = upstream_error(error), dict[str, str]()
        if upstream.status == TOO_MANY_REQUESTS:
            status, headers = TOO_MANY_REQUESTS, pause_header(upstream.retry_after)
        return status, openai_error(status, detail, upstream), headers

    def error_event(self, error: BaseException, request_id: str) -> bytes:
        status, text = errors.look_up(errors.AFTER_FIRST_CHUNK, error, request_id)
        return frame(json.dumps(openai_error(status, text, upstream_error(error))))


CONTRACT, OPENAI = ContractFormat(), OpenAIFormat()


def openai_error(
    status: int, detail: Any, upstream: UpstreamError = ChatError.upstream
) -> dict[str, Any]:
    """Return an error in OpenAI's shape, with what an upstream said in place of our own."""
    other_type = "invalid_request_error" if status < 500 else "server_error"
    message = detail if isinstance(detail, str) else " ".join(map(str, detail))
    is_model = status == 404 and detail == str(EndpointNotFoundError())
    fields: Mapping[str, Any] = upstream.fields
    return {
        "error": {
            "message": message,
            "type": ERROR_TYPES.get(status, other_type),
            "param": "model" if is_model else None,
            "code": "model_not_found" if is_model else ERROR_CODES.get(status),
            **fields,
        }
    }
