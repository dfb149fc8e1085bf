"""How the two families of addresses answer: the contract's, and OpenAI's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from gateway.chat import errors
from gateway.chat.sse import frame

KINDS = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How streams and errors are written.

    The contract omits fields without a value, and every event is JSON. OpenAI's clients
    expect chunks as they are, `[DONE]` at the end, and errors as an object.
    """

    omits_nulls: bool
    says_done: bool

    def error(self, status: int, detail: Any) -> dict[str, Any]:
        """Return the body of an error."""
        return openai_error(status, detail) if self.says_done else {"detail": detail}

    def error_event(
        self, error: BaseException, request_id: str, now: datetime | None = None
    ) -> bytes:
        """Return the last event of a stream that fails after it began."""
        chunk: Mapping[str, Any] = errors.error_chunk(error, request_id, now)
        if self.says_done:
            told = chunk["error"]
            chunk = openai_error(told["status_code"], told["content"]["error"])
        return frame(orjson.dumps(chunk))


CONTRACT = Dialect(omits_nulls=True, says_done=False)
OPENAI = Dialect(omits_nulls=False, says_done=True)


def openai_error(status: int, detail: Any) -> dict[str, Any]:
    """Return an error in OpenAI's shape."""
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
        }
    }
