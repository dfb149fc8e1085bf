"""The handler that turns exceptions into responses of the REST APIs."""

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
from webhooks_core.errors import RETRY_AFTER, ApiError

log = structlog.stdlib.get_logger(__name__)

# No folder or no space for temporary files: the server could not store the body.
_NOT_STORED = {errno.ENOENT, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES}


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
            seconds = max(1, int(getattr(error, "wait", None) or 1))
            return Failure(429, headers={"Retry-After": str(seconds)})
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
