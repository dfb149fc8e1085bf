"""Recording's errors: one class per failure, one handler, one shape.

The shape is `{"error": {"code": …, "message": …}}` (recording, "Errors").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from django.http import HttpRequest, JsonResponse
from rest_framework.response import Response

from webhooks_core.failures import RETRY_AFTER, failure_of

log = structlog.stdlib.get_logger("recording")


class RecordingError(Exception):
    """A failure that the caller is told about; the docstring is the default message."""

    status_code = 500
    code = "internal"

    def __init__(
        self, message: str = "", *, headers: Mapping[str, str] | None = None
    ) -> None:
        self.message = message or (self.__doc__ or "")
        self.headers = dict(headers or {})
        super().__init__(self.message)

    @property
    def body(self) -> dict[str, dict[str, str]]:
        return {"error": {"code": self.code, "message": self.message}}


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

    def __init__(
        self, message: str = "", *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, headers=headers or RETRY_AFTER)


BY_STATUS: dict[int, type[RecordingError]] = {
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


def translate(error: BaseException | None) -> RecordingError | None:
    """Return what the caller is told about an exception; None if it is unforeseen."""
    if isinstance(error, RecordingError):
        return error
    failure = failure_of(error)
    if failure is None:
        return None
    return BY_STATUS[failure.status](failure.message, headers=failure.headers)


def handle(error: Exception, _: dict[str, Any]) -> Response | None:
    """Answer an exception of a view. The unforeseen goes on to Django, which logs it."""
    told = translate(error)
    if told is None:
        return None
    if isinstance(told, UnavailableError):
        log.error("a needed service is away", exc_info=error)
    return Response(told.body, status=told.status_code, headers=told.headers)


def response_for(
    _: HttpRequest, status: int, error: BaseException | None
) -> JsonResponse:
    """Answer what failed outside our views: unknown addresses, middleware, crashes.

    `status` (400, 404 or 500) counts unless the exception has an answer of its own.
    """
    told = translate(error) or BY_STATUS[status]()
    return JsonResponse(told.body, status=told.status_code, headers=told.headers)
