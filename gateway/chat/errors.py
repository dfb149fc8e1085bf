"""The failures of chat: one class per cause, and the specification's three tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import UnionType
from typing import Any
from zoneinfo import ZoneInfo

from webhooks_core.errors import ApiError, TooManyRequestsError

PACIFIC = ZoneInfo("America/Los_Angeles")
INTERNAL = "Internal error occurred. Our team has been notified."
TOO_MANY_REQUESTS = 429
MAX_TEXT = 500  # of what a client sent and gets back
UPSTREAM = "Upstream service error for request_id {request_id}"


@dataclass(frozen=True, slots=True)
class UpstreamError:
    """The parts of an upstream's error that OpenAI's shape passes on, validated.

    `retry_after` is the pause in seconds that it asks for. `reason` is its text, for clients of whom
    the operator wants it to be read. `response` is all of it, its status, body and headers, where a
    client gets it as it is.
    """

    status: int = 0
    fields: Mapping[str, str] = field(default_factory=dict)
    retry_after: float | None = None
    reason: str = ""
    response: tuple[int, bytes, dict[str, str]] | None = None


NOTHING = UpstreamError()


class ChatError(Exception):
    """A failure whose message, its `str()`, is for the caller.

    `denial` is the reason of the policy decision that it stands for, if it stands for one.
    """

    denial = ""

    def __init__(self, *args: Any, upstream: UpstreamError = NOTHING) -> None:
        super().__init__(*args)
        self.upstream = upstream


class EndpointNotFoundError(ChatError):
    """The endpoint is absent, or hidden from the caller."""

    denial = "not_found_or_forbidden"

    def __init__(self) -> None:
        super().__init__("The specified endpoint could not be found.")


class InvalidValueError(ChatError):
    """The request is refused before the response begins."""


class InvalidRequestError(ChatError):
    """The body is not a request, or an upstream refused the request during a stream."""


class RefusedError(InvalidValueError, InvalidRequestError):
    """The request is refused, by an upstream or the operator's function: before and in a stream."""


class UnsupportedRequestError(ChatError):
    """The endpoint does not support the request; the message says what, which a client may have sent."""

    def __init__(self, what: str) -> None:
        super().__init__(what[:MAX_TEXT])


class UnsupportedInferenceTypeError(ChatError):
    """The endpoint has another inference type; the message says which."""


class UpstreamServiceError(ChatError):
    """The upstream failed. The message is for the log, never for the caller."""


class OverBudgetError(TooManyRequestsError):
    """A budget does not allow the request: clients need not try again at once."""


Failure = tuple[int, Any, dict[str, str]]  # status, body and headers
# The rows of a table: classes, status, and the detail; None stands for the arguments.
Table = tuple[tuple[type[BaseException] | UnionType, int, str | None], ...]

SYNCHRONOUS: Table = (
    (UpstreamServiceError, 500, UPSTREAM),
    (EndpointNotFoundError, 404, "{error}"),
    (InvalidValueError | InvalidRequestError, 400, None),
    (UnsupportedRequestError, 400, "Endpoint does not support request: {error}"),
    (UnsupportedInferenceTypeError, 400, "Unsupported inference type: {error}"),
    (BaseException, 500, INTERNAL),
)
BEFORE_FIRST_CHUNK: Table = (
    (EndpointNotFoundError, 404, "{error}"),
    (UnsupportedInferenceTypeError | UnsupportedRequestError, 400, "{error}"),
    (InvalidValueError, 400, "{error}"),
    (BaseException, 500, INTERNAL),
)
AFTER_FIRST_CHUNK: Table = (
    (InvalidRequestError, 400, "{error}"),
    (UpstreamServiceError, 500, UPSTREAM),
    (BaseException, 500, INTERNAL),
)


def look_up(table: Table, error: BaseException, request_id: str) -> tuple[int, Any]:
    """Return the status and the detail that a table gives to a failure.

    A request that is refused before a call has the same everywhere in the gateway.
    """
    if isinstance(error, ApiError):
        return error.status_code, error.detail
    status, detail = next(row[1:] for row in table if isinstance(error, row[0]))
    if detail is None:
        return status, arguments(error)
    return status, detail.format(error=error, request_id=request_id)


def arguments(error: BaseException) -> Any:
    """Return the single argument as it is, several as a list, or the text if there is none."""
    match error.args:
        case ():
            return str(error)
        case (single,):
            return single
        case several:
            return list(several)


def error_chunk(
    error: BaseException, request_id: str, now: datetime | None = None
) -> dict[str, Any]:
    """Return the stream error chunk: the last event of a stream that fails after it began."""
    status, text = look_up(AFTER_FIRST_CHUNK, error, request_id)
    content = {"error": text, "timestamp": pacific(now or datetime.now(UTC))}
    return {
        "request_id": request_id,
        "error": {"status_code": status, "content": content},
    }


def pacific(time: datetime) -> str:
    """Return a time as `2026-11-20 19:20:00 PST`, in the US Pacific time zone."""
    return time.astimezone(PACIFIC).strftime("%Y-%m-%d %H:%M:%S %Z")
