"""How the two families of addresses answer: the contract's, and OpenAI's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from gateway.chat import errors
from gateway.chat.streaming.sse import frame

KINDS = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
TOO_MANY_REQUESTS = 429
CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


@dataclass(frozen=True, slots=True)
class ApiFormat:
    """How streams and errors are written.

    The contract omits fields without a value, and every event is JSON. OpenAI's clients
    expect chunks as they are, `[DONE]` at the end, and errors as an object.
    """

    omits_nulls: bool
    says_done: bool

    def error(self, status: int, detail: Any) -> dict[str, Any]:
        """Return the body of an error."""
        return openai_error(status, detail) if self.says_done else {"detail": detail}

    def failure(
        self, table: errors.Table, error: BaseException, request_id: str
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        """Return status, body and headers for a failure of a call, by one of the tables.

        OpenAI's clients also get what the upstream said for programs to read.
        """
        status, detail = errors.look_up(table, error, request_id)
        if not self.says_done:
            return status, {"detail": detail}, {}
        said = _said(error)
        if said.status != TOO_MANY_REQUESTS:
            return status, openai_error(status, detail, said), {}
        headers = {"Retry-After": said.retry_after} if said.retry_after else {}
        body = openai_error(TOO_MANY_REQUESTS, detail, said)
        return TOO_MANY_REQUESTS, body, headers

    def error_event(
        self, error: BaseException, request_id: str, now: datetime | None = None
    ) -> bytes:
        """Return the last event of a stream that fails after it began."""
        chunk: Mapping[str, Any] = errors.error_chunk(error, request_id, now)
        if self.says_done:
            told = chunk["error"]
            status, text = told["status_code"], told["content"]["error"]
            chunk = openai_error(status, text, _said(error))
        return frame(orjson.dumps(chunk))


CONTRACT = ApiFormat(omits_nulls=True, says_done=False)
OPENAI = ApiFormat(omits_nulls=False, says_done=True)


def _said(error: BaseException) -> errors.UpstreamError:
    if isinstance(error, errors.ChatError):
        return error.upstream
    return errors.ChatError.upstream


def openai_error(
    status: int, detail: Any, said: errors.UpstreamError = errors.ChatError.upstream
) -> dict[str, Any]:
    """Return an error in OpenAI's shape, with what an upstream said in place of our own."""
    kind = KINDS.get(
        status, "invalid_request_error" if status < 500 else "server_error"
    )
    is_model = status == 404 and detail == str(errors.EndpointNotFoundError())
    text = detail if isinstance(detail, str) else " ".join(map(str, detail))
    return {
        "error": {
            "message": text,
            "type": kind,
            "param": "model" if is_model else None,
            "code": "model_not_found" if is_model else CODES.get(status),
            **said.fields,
        }
    }
