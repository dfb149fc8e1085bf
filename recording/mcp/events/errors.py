"""The errors of MCP Events, with the numbers of the extension and those of its first draft."""

from __future__ import annotations

from typing import Any, ClassVar


class EventsError(Exception):
    """A request that is refused; `message` says what to change, `data` is for programs."""

    name: ClassVar[str]
    code: ClassVar[int]  # of the extension (SEP-3415)
    draft_code: ClassVar[int]  # of the draft before it, which assistants read

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.data = data

    def as_dict(self, *, is_draft: bool) -> dict[str, Any]:
        """Return the error object of JSON-RPC."""
        error = {
            "code": self.draft_code if is_draft else self.code,
            "message": f"{self.name}: {self}",
        }
        return error | ({"data": self.data} if self.data else {})


class InvalidParamsError(EventsError):
    name, code, draft_code = "InvalidParams", -32602, -32602


class NotFoundError(EventsError):
    name, code, draft_code = "NotFound", -32023, -32011


class ForbiddenError(EventsError):
    name, code, draft_code = "Forbidden", -32024, -32012


class ResourceExhaustedError(EventsError):
    name, code, draft_code = "ResourceExhausted", -32025, -32013


class UnsupportedError(EventsError):
    name, code, draft_code = "Unsupported", -32026, -32014


class CallbackEndpointError(EventsError):
    name, code, draft_code = "CallbackEndpointError", -32027, -32015
