"""The chat operation's failures: one class per cause, and the specification's three tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

PACIFIC = ZoneInfo("America/Los_Angeles")
INTERNAL = "Internal error occurred. Our team has been notified."


@dataclass(frozen=True, slots=True)
class UpstreamError:
    """What an upstream said of a failure; OpenAI's shape passes it on. Checked, empty if unsaid."""

    status: int = 0
    fields: Mapping[str, str] = field(default_factory=dict)
    retry_after: str = ""


class ChatError(Exception):
    """A failure of a chat request that the caller is told about; `str()` is its message."""

    upstream = UpstreamError()


class EndpointNotFoundError(ChatError):
    """There is no such endpoint, or the caller may not know that there is."""

    def __init__(self) -> None:
        super().__init__("The specified endpoint could not be found.")


class InvalidValueError(ChatError):
    """The request is refused before anything of an answer was sent."""


class InvalidRequestError(ChatError):
    """The request is not one, or an upstream refused it in the middle of a stream."""


class UnsupportedRequestError(ChatError):
    """The endpoint cannot do what the request asks for; the message says what."""


class UnsupportedInferenceTypeError(ChatError):
    """The endpoint is not one for chat; the message says which kind it is."""


class UpstreamServiceError(ChatError):
    """The upstream failed. The message is for the log alone, never for the caller.

    `retry_after` is for how many seconds it asked to be left alone.
    """

    def __init__(self, reason: str, *, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table: which failures, the status, and what the caller reads.

    `detail` gets the failure and the request's id.
    """

    kinds: tuple[type[BaseException], ...]
    status: int
    detail: Callable[[BaseException, str], Any]


def arguments(error: BaseException, _: str = "") -> Any:
    """Return the single argument as it is, several as a list, and the text when there is none."""
    match error.args:
        case ():
            return str(error)
        case (single,):
            return single
        case several:
            return list(several)


def message(error: BaseException, _: str = "") -> str:
    return str(error)


def upstream(_: BaseException, request_id: str) -> str:
    return f"Upstream service error for request_id {request_id}"


def internal(_: BaseException, __: str = "") -> str:
    return INTERNAL


def unsupported_request(error: BaseException, _: str = "") -> str:
    return f"Endpoint does not support request: {error}"


def unsupported_type(error: BaseException, _: str = "") -> str:
    return f"Unsupported inference type: {error}"


Table = tuple[Row, ...]

ANY_OTHER = Row((BaseException,), 500, internal)

SYNCHRONOUS = (
    Row((UpstreamServiceError,), 500, upstream),
    Row((EndpointNotFoundError,), 404, message),
    Row((InvalidValueError, InvalidRequestError), 400, arguments),
    Row((UnsupportedRequestError,), 400, unsupported_request),
    Row((UnsupportedInferenceTypeError,), 400, unsupported_type),
    ANY_OTHER,
)
BEFORE_FIRST_CHUNK = (
    Row((EndpointNotFoundError,), 404, message),
    Row(
        (UnsupportedInferenceTypeError, UnsupportedRequestError, InvalidValueError),
        400,
        message,
    ),
    ANY_OTHER,
)
AFTER_FIRST_CHUNK = (
    Row((InvalidRequestError,), 400, message),
    Row((UpstreamServiceError,), 500, upstream),
    ANY_OTHER,
)


def look_up(table: Table, error: BaseException, request_id: str) -> tuple[int, Any]:
    """Return the status and the detail that a table gives to a failure."""
    row = next(row for row in table if isinstance(error, row.kinds))
    return row.status, row.detail(error, request_id)


def error_chunk(
    error: BaseException, request_id: str, now: datetime | None = None
) -> dict[str, Any]:
    """Return the stream error chunk, the last event of a stream that fails after it began."""
    status, text = look_up(AFTER_FIRST_CHUNK, error, request_id)
    content = {"error": text, "timestamp": pacific(now or datetime.now(UTC))}
    return {
        "request_id": request_id,
        "error": {"status_code": status, "content": content},
    }


def pacific(time: datetime) -> str:
    """Return a time as `2026-11-20 19:20:00 PST`, in the US Pacific time zone."""
    return time.astimezone(PACIFIC).strftime("%Y-%m-%d %H:%M:%S %Z")
