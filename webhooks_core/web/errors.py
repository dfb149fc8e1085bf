"""The errors of the products, and the handler that turns exceptions into responses."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, JsonResponse
from django.http.request import UnreadablePostError
from rest_framework import exceptions
from rest_framework.response import Response

from webhooks_core.database.outages import is_outage

log = structlog.stdlib.get_logger(__name__)

# Of a 503: most outages are restarts.
RETRY_AFTER = {"Retry-After": "5"}

# No folder or no space for temporary files: the server could not store the body.
_NOT_STORED = {errno.ENOENT, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES}


class ApiError(exceptions.APIException):
    """An error response; the first line of a subclass's docstring is its default message."""

    detail: Any
    default_headers: Mapping[str, str] = {}

    def __init__(
        self, detail: Any = "", *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self.detail = detail or (self.__doc__ or "").partition("\n")[0]
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


@dataclass(frozen=True, slots=True)
class Failure:
    """A status, a message and headers; without a message the product's default applies."""

    status: int
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


# The first kind that an exception is decides. A body that cannot be read: the client went away.
STATUSES: Mapping[type[Exception], int] = {
    exceptions.NotFound: 404,
    Http404: 404,
    exceptions.MethodNotAllowed: 405,
    exceptions.UnsupportedMediaType: 415,
    RequestDataTooBig: 413,
    SuspiciousOperation: 400,
    UnreadablePostError: 400,
}


def failure_of(error: BaseException | None) -> Failure | None:
    """Return the failure that an exception means; None for an unexpected one."""
    match error:
        case exceptions.ValidationError() | exceptions.ParseError():
            return Failure(400, _first_message(error.detail))
        case exceptions.Throttled():
            return Failure(429, headers={"Retry-After": _seconds(error)})
        case UnreadablePostError() if error.errno in _NOT_STORED:
            return Failure(503, headers=RETRY_AFTER)
    for kind, status in STATUSES.items():
        if isinstance(error, kind):
            return Failure(status)
    is_away = is_outage(error) or _is_redis_error(error)
    return Failure(503, headers=RETRY_AFTER) if is_away else None


def _is_redis_error(error: BaseException | None) -> bool:
    """Return True for an error of Redis, whose package is loaded only where it is used."""
    redis = sys.modules.get("redis.exceptions")
    return redis is not None and isinstance(error, redis.RedisError)


def _seconds(throttled: Any) -> str:
    return str(max(1, int(throttled.wait or 1)))


def _first_message(detail: Any) -> str:
    """Return the first text of DRF's nested details: the error of the first invalid field."""
    while not isinstance(detail, str):
        detail = next(iter(detail.values() if isinstance(detail, dict) else detail))
    return str(detail)


@dataclass(frozen=True)
class ErrorHandler:
    """Turns exceptions into errors, and these into a product's responses.

    `body` returns the body in the product's shape. `kinds` has 500 and every status of
    `failure_of`. `headers` are those of every response of the product, besides `Cache-Control`.
    """

    body: Callable[[ApiError], dict[str, Any]]
    kinds: Mapping[int, type[ApiError]]
    headers: Mapping[str, str] = field(default_factory=dict)

    def translate(self, error: BaseException | None) -> ApiError | None:
        """Return the error for an exception; None for an unexpected one."""
        if isinstance(error, ApiError):
            return error
        failure = failure_of(error)
        if failure is None:
            return None
        return self.kinds[failure.status](failure.message, headers=failure.headers)

    def handle(self, error: Exception, context: Mapping[str, Any]) -> Response | None:
        """Respond to an exception of a DRF view; Django handles and logs an unexpected one."""
        api_error = self.translate(error)
        if api_error is None:
            return None
        if api_error.status_code == 405:
            api_error.headers["Allow"] = ", ".join(context["view"].allowed_methods)
        if api_error.status_code == 503:
            log.error("dependency unavailable", exc_info=error)
        return Response(
            self.body(api_error),
            status=api_error.status_code,
            headers=api_error.headers,
        )

    def response_for(
        self, _: HttpRequest, status: int, error: BaseException | None
    ) -> JsonResponse:
        """Respond to an error outside our views: an unknown address, a middleware, a crash.

        `status` (400, 404 or 500) applies unless the exception maps to an error.
        """
        api_error = self.translate(error) or self.kinds[status]()
        headers = api_error.headers | {"Cache-Control": "no-store", **self.headers}
        return JsonResponse(
            self.body(api_error), status=api_error.status_code, headers=headers
        )
