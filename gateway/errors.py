"""The gateway's errors: one class per failure, one handler, one shape: `{"detail": …}`."""

from __future__ import annotations

from typing import Any

from webhooks_core.web.errors import ApiError, ErrorHandler
from webhooks_core.web.exception_mapping import RETRY_AFTER


class GatewayError(ApiError):
    """The base of the errors that callers get; `detail` is any JSON value."""

    @property
    def body(self) -> dict[str, Any]:
        return {"detail": self.detail}


class InternalError(GatewayError):
    """Something went wrong on our side."""


class BadRequestError(GatewayError):
    """The request is not valid."""

    status_code = 400


class UnauthorizedError(GatewayError):
    """Send a gateway key: Authorization: Bearer <key>."""

    status_code = 401

    def __init__(self, detail: Any = "", *, refused: bool = False) -> None:
        # RFC 6750 section 3: a request without credentials gets no error code.
        error = ', error="invalid_token"' if refused else ""
        challenge = f'Bearer realm="signpost"{error}'
        super().__init__(detail, headers={"WWW-Authenticate": challenge})


class NotFoundError(GatewayError):
    """There is nothing at this address."""

    status_code = 404


class MethodNotAllowedError(GatewayError):
    """The address does not know the method."""

    status_code = 405


class ConflictError(GatewayError):
    """The state of the resource does not allow this."""

    status_code = 409


class PayloadTooLargeError(GatewayError):
    """The body is too large."""

    status_code = 413


class UnsupportedMediaTypeError(GatewayError):
    """The body's Content-Type is not supported."""

    status_code = 415


class TooManyRequestsError(GatewayError):
    """Too many requests."""

    status_code = 429


class UnavailableError(GatewayError):
    """A required service is temporarily unavailable."""

    status_code = 503
    default_headers = RETRY_AFTER


ERRORS: dict[int, type[GatewayError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    404: NotFoundError,
    405: MethodNotAllowedError,
    409: ConflictError,
    413: PayloadTooLargeError,
    415: UnsupportedMediaTypeError,
    429: TooManyRequestsError,
    500: InternalError,
    503: UnavailableError,
}
HANDLER = ErrorHandler(GatewayError, ERRORS)
