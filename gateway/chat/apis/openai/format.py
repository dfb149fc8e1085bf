"""Failures as OpenAI writes them, and as the contract does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gateway import json
from gateway.chat.apis.base import Format
from gateway.chat.errors import (
    NOTHING,
    EndpointNotFoundError,
    UpstreamError,
    error_chunk,
)
from gateway.chat.sse import frame
from gateway.configuration.shapes import ModelEntry

ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
ERROR_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


class ContractFormat(Format):
    """`{"detail": …}`, and the contract's error chunk."""

    passes_pauses = False

    def error(
        self, status: int, detail: Any, upstream: UpstreamError = NOTHING
    ) -> dict[str, Any]:
        return {"detail": detail}

    def error_event(self, error: BaseException, request_id: str) -> bytes:
        return frame(json.dumps(error_chunk(error, request_id)))


class OpenAIFormat(Format):
    """OpenAI's object. Its clients also get what the upstream said for programs to read."""

    def error(
        self, status: int, detail: Any, upstream: UpstreamError = NOTHING
    ) -> dict[str, Any]:
        other_type = "invalid_request_error" if status < 500 else "server_error"
        message = detail if isinstance(detail, str) else " ".join(map(str, detail))
        is_model = status == 404 and detail == str(EndpointNotFoundError())
        return {
            "error": {
                "message": message,
                "type": ERROR_TYPES.get(status, other_type),
                "param": "model" if is_model else None,
                "code": "model_not_found" if is_model else ERROR_CODES.get(status),
                **upstream.fields,
            }
        }

    def models(self, endpoints: Sequence[ModelEntry]) -> dict[str, Any]:
        return {"object": "list", "data": [*map(self.model, endpoints)]}

    def model(self, endpoint: ModelEntry) -> dict[str, Any]:
        name, upstream = endpoint.name, endpoint.upstream
        return {"id": name, "object": "model", "created": 0, "owned_by": upstream}


CONTRACT, OPENAI = ContractFormat(), OpenAIFormat()
