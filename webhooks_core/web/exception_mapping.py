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
    is_away = is_outage(error) or isinstance(error, _OUTAGES)
    return Failure(503, headers=RETRY_AFTER) if is_away else None


def _seconds(throttled: Any) -> str:
    return str(max(1, int(throttled.wait or 1)))


def _first_message(detail: Any) -> str:
    """Return the first text of DRF's nested details: the error of the first invalid field."""
    while not isinstance(detail, str):
        detail = next(iter(detail.values() if isinstance(detail, dict) else detail))
    return str(detail)
