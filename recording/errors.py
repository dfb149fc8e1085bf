"""Recording's errors: one class per failure, one handler, one shape.

The shape is `{"error": {"code": …, "message": …}}` (recording, "Errors").
"""

from __future__ import annotations

from recording import cors
from webhooks_core.web.errors import ApiError, ErrorHandler
from webhooks_core.web.exception_mapping import RETRY_AFTER


class RecordingError(ApiError):
    """A failure that the caller is told about, with a code."""

    code = "internal"

    @property
    def body(self) -> dict[str, dict[str, str]]:
        return {"error": {"code": self.code, "message": self.detail}}


class InternalError(RecordingError):
    """Something went wrong on our side."""


class BadRequestError(RecordingError):
    """The request is not valid."""

    status_code, code = 400, "bad_request"


class UnauthorizedError(RecordingError):
    """Missing or invalid Bearer token."""

    status_code, code = 401, "unauthorized"


class NotFoundError(RecordingError):
    """There is nothing at this address."""

    status_code, code = 404, "not_found"


class MethodNotAllowedError(RecordingError):
    """The address does not know the method."""

    status_code, code = 405, "method_not_allowed"


class PayloadTooLargeError(RecordingError):
    """The body is too large."""

    status_code, code = 413, "payload_too_large"


class UnsupportedMediaTypeError(RecordingError):
    """The body must be JSON: Content-Type: application/json."""

    status_code, code = 415, "unsupported_media_type"


class TooManyRequestsError(RecordingError):
    """Too many requests."""

    status_code, code = 429, "too_many_requests"


class UnavailableError(RecordingError):
    """A required service is temporarily unavailable."""

    status_code, code = 503, "unavailable"
    default_headers = RETRY_AFTER


ERRORS: dict[int, type[RecordingError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    404: NotFoundError,
    405: MethodNotAllowedError,
    413: PayloadTooLargeError,
    415: UnsupportedMediaTypeError,
    429: TooManyRequestsError,
    500: InternalError,
    503: UnavailableError,
}
HANDLER = ErrorHandler(RecordingError, ERRORS, headers=cors.CORS_HEADERS)
