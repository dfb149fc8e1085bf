"""The statuses of exceptions of Django, DRF, the database and Redis."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import Http404
from django.http.request import UnreadablePostError
from rest_framework import exceptions

from webhooks_core.database.outages import is_outage
from webhooks_core.web.parsers import EncodedBody, PayloadTooLarge

# Of a 503: most outages are restarts.
RETRY_AFTER = {"Retry-After": "5"}

_OUTAGES: tuple[type[Exception], ...] = ()
with suppress(ImportError):  # the package's extra `redis` is not installed
    from redis.exceptions import RedisError

    _OUTAGES = (RedisError,)

# No folder or no space for temporary files: the server could not store the body.
_NOT_STORED = {errno.ENOENT, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES}


@dataclass(frozen=True, slots=True)
class Failure:
    """A status, a message and headers; without a message the product's default applies."""

    status: int
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


def failure_of(error: BaseException | None) -> Failure | None:
    """Return the failure that an exception means; None for an unexpected one."""
    if isinstance(error, exceptions.APIException):
        return _failure_of_drf(error)
    return _failure_of_django(error)


def _failure_of_drf(error: exceptions.APIException) -> Failure | None:
    match error:
        case EncodedBody():
            return Failure(415, error.default_detail, error.headers)
        case exceptions.Throttled():
            return Failure(429, headers={"Retry-After": _seconds(error)})
        case exceptions.ValidationError() | exceptions.ParseError() | PayloadTooLarge():
            return Failure(error.status_code, _first_message(error.detail))
        case (
            exceptions.NotFound()
            | exceptions.MethodNotAllowed()
            | exceptions.UnsupportedMediaType()
        ):
            return Failure(error.status_code)
    return None


def _failure_of_django(error: BaseException | None) -> Failure | None:
    match error:
        case Http404():
            return Failure(404)
        case RequestDataTooBig():
            return Failure(413)
        case UnreadablePostError() if error.errno in _NOT_STORED:
            return Failure(503, headers=RETRY_AFTER)
        case UnreadablePostError() | SuspiciousOperation():
            return Failure(400)  # unreadable: the client went away
        case _ if is_outage(error) or isinstance(error, _OUTAGES):
            return Failure(503, headers=RETRY_AFTER)
    return None


def _seconds(throttled: Any) -> str:
    return str(max(1, int(throttled.wait or 1)))


def _first_message(detail: Any) -> str:
    """Return the first text of DRF's nested details: the error of the first invalid field."""
    while not isinstance(detail, str):
        detail = next(iter(detail.values() if isinstance(detail, dict) else detail))
    return str(detail)
