"""The gateway's errors. Their shape is `{"detail": …}`, where the detail is any JSON value."""

from __future__ import annotations

from typing import Any

from webhooks_core import errors
from webhooks_core.errors import ApiError
from webhooks_core.web.errors import ErrorHandler


class UnauthorizedError(ApiError):
    """Send a gateway key: Authorization: Bearer <key>."""

    status_code = 401

    def __init__(self, detail: Any = "", *, refused: bool = False) -> None:
        # RFC 6750 section 3: a request without credentials gets no error code.
        error = ', error="invalid_token"' if refused else ""
        challenge = f'Bearer realm="signpost"{error}'
        super().__init__(detail, headers={"WWW-Authenticate": challenge})


class ForbiddenError(ApiError):
    """The key does not have the scope of this address."""

    status_code = 403


class UnprocessableError(ApiError):
    """The key was used for another request before."""

    status_code = 422


class UnsupportedMediaTypeError(ApiError):
    """The body's Content-Type is not supported."""

    status_code = 415


ERRORS = {
    **errors.ERRORS,
    401: UnauthorizedError,
    403: ForbiddenError,
    415: UnsupportedMediaTypeError,
    422: UnprocessableError,
}


def body(error: ApiError) -> dict[str, Any]:
    """Return the body of an error response."""
    return {"detail": error.detail}


HANDLER = ErrorHandler(body, ERRORS)
