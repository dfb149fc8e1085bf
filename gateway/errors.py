"""The gateway's errors: one class per failure, one handler, one shape: `{"detail": …}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from django.http import HttpRequest, JsonResponse
from rest_framework.response import Response

from webhooks_core.failures import RETRY_AFTER, failure_of

log = structlog.stdlib.get_logger(__name__)


class GatewayError(Exception):
    """A failure that the caller is told about; the docstring is the default detail.

    `detail` is any JSON value. A class says its status; `status_code=` says another one.
    """

    status_code = 500

    def __init__(
        self,
        detail: Any = "",
        *,
        status_code: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.detail = detail or (self.__doc__ or "").partition("\n")[0]
        self.status_code = status_code or self.status_code
        self.headers = dict(headers or {})
        super().__init__(self.detail)

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
        # RFC 6750 section 3: a request without credentials is told no error code.
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

    def __init__(
        self, detail: Any = "", *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail, headers=headers or RETRY_AFTER)


BY_STATUS: dict[int, type[GatewayError]] = {
    kind.status_code: kind
    for kind in (
        BadRequestError,
        NotFoundError,
        MethodNotAllowedError,
        PayloadTooLargeError,
        UnsupportedMediaTypeError,
        TooManyRequestsError,
        InternalError,
        UnavailableError,
    )
}


def translate(error: BaseException | None) -> GatewayError | None:
    """Return what the caller is told about an exception; None if it is unforeseen."""
    if isinstance(error, GatewayError):
        return error
    failure = failure_of(error)
    if failure is None:
        return None
    return BY_STATUS[failure.status](failure.message, headers=failure.headers)


def handle(error: Exception, _: dict[str, Any]) -> Response | None:
    """Answer an exception of a DRF view. The unforeseen goes on to Django, which logs it."""
    told = translate(error)
    if told is None:
        return None
    if isinstance(told, UnavailableError):
        log.error("a needed service is away", exc_info=error)
    return Response(told.body, status=told.status_code, headers=told.headers)


def response(error: GatewayError) -> JsonResponse:
    """Return an error as a plain Django response, for views outside DRF."""
    return JsonResponse(error.body, status=error.status_code, headers=error.headers)


def response_for(
    _: HttpRequest, status: int, error: BaseException | None
) -> JsonResponse:
    """Answer what failed outside our views: unknown addresses, middleware, crashes.

    `status` (400, 404 or 500) counts unless the exception has an answer of its own.
    """
    return response(translate(error) or BY_STATUS[status]())
