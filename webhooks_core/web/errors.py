"""The errors of the products, and the handler that turns exceptions into responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.http import HttpRequest, JsonResponse
from rest_framework.exceptions import APIException
from rest_framework.response import Response

from webhooks_core.web.exception_mapping import RETRY_AFTER, failure_of

log = structlog.stdlib.get_logger(__name__)


class ApiError(APIException):
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
