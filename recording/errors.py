"""Recording's errors. Their shape is `{"error": {"code": …, "message": …}}` (recording, "Errors")."""

from __future__ import annotations

from recording import cors
from webhooks_core import errors
from webhooks_core.errors import ApiError
from webhooks_core.web.errors import ErrorHandler


class UnauthorizedError(ApiError):
    """Missing or invalid Bearer token."""

    status_code = 401


class UnsupportedMediaTypeError(ApiError):
    """The body must be JSON: Content-Type: application/json."""

    status_code = 415


ERRORS = {**errors.ERRORS, 401: UnauthorizedError, 415: UnsupportedMediaTypeError}
CODES = {
    400: "bad_request",
    401: "unauthorized",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    410: "gone",
    413: "payload_too_large",
    415: "unsupported_media_type",
    429: "too_many_requests",
    500: "internal",
    503: "unavailable",
}


def body(error: ApiError) -> dict[str, dict[str, str]]:
    """Return the body of an error response."""
    return {"error": {"code": CODES[error.status_code], "message": error.detail}}


HANDLER = ErrorHandler(body, ERRORS, headers=cors.CORS_HEADERS)
