"""The errors of use cases and of the products' APIs, by their HTTP status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Of a 503: most outages are restarts.
RETRY_AFTER = {"Retry-After": "5"}


class ApiError(Exception):
    """An error response; the first line of a subclass's docstring is its default message."""

    status_code = 500
    default_headers: Mapping[str, str] = {}

    def __init__(
        self, detail: Any = "", *, headers: Mapping[str, str] | None = None
    ) -> None:
        self.detail = detail or (self.__doc__ or "").partition("\n")[0]
        super().__init__(self.detail)
        self.headers = dict(headers or self.default_headers)


class BadRequestError(ApiError):
    """The request is not valid."""

    status_code = 400


class NotFoundError(ApiError):
    """There is nothing at this address."""

    status_code = 404


class MethodNotAllowedError(ApiError):
    """The address does not know the method."""

    status_code = 405


class ConflictError(ApiError):
    """The state of the resource does not allow this."""

    status_code = 409


class GoneError(ApiError):
    """It was removed for its age."""

    status_code = 410


class PayloadTooLargeError(ApiError):
    """The body is too large."""

    status_code = 413


class TooManyRequestsError(ApiError):
    """Too many requests."""

    status_code = 429


class InternalError(ApiError):
    """Something went wrong on our side."""


class UnavailableError(ApiError):
    """A required service is temporarily unavailable."""

    status_code = 503
    default_headers = RETRY_AFTER


# A product adds its 401 and 415, whose messages say what it expects.
ERRORS: Mapping[int, type[ApiError]] = {
    400: BadRequestError,
    404: NotFoundError,
    405: MethodNotAllowedError,
    409: ConflictError,
    410: GoneError,
    413: PayloadTooLargeError,
    429: TooManyRequestsError,
    500: InternalError,
    503: UnavailableError,
}
