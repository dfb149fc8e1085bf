"""What went wrong outside a product's own code, as its callers may be told."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404
from django.http.request import UnreadablePostError
from redis.exceptions import RedisError
from rest_framework import exceptions

from webhooks_core.api.views import EncodedBody, MethodNotAllowed, PayloadTooLarge

# Of a 503: most outages are a restart.
RETRY_AFTER = {"Retry-After": "5"}


@dataclass(frozen=True, slots=True)
class Failure:
    """A status, headers, and words for the caller; no words leave them to the product."""

    status: int
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


def _throttled(error: Any) -> Failure:
    seconds = max(1, int(error.wait or 1))
    return Failure(429, headers={"Retry-After": str(seconds)})


# No folder or no room for temporary files: the server could not keep the body.
_NOT_STORED = {errno.ENOENT, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES}


def _unreadable(error: UnreadablePostError) -> Failure:
    if error.errno in _NOT_STORED:
        return Failure(503, headers=RETRY_AFTER)
    return Failure(400)  # the client went away


# The first that fits counts.
_FAILURES: tuple[
    tuple[tuple[type[BaseException], ...], Callable[[Any], Failure]], ...
] = (
    ((Http404, exceptions.NotFound), lambda _: Failure(404)),
    ((MethodNotAllowed,), lambda error: Failure(405, headers=error.headers)),
    ((exceptions.ParseError,), lambda error: Failure(400, str(error.detail))),
    ((exceptions.UnsupportedMediaType,), lambda _: Failure(415)),
    ((EncodedBody,), lambda error: Failure(415, str(error.detail), error.headers)),
    ((exceptions.Throttled,), _throttled),
    ((PayloadTooLarge,), lambda error: Failure(413, str(error.detail))),
    ((RequestDataTooBig,), lambda _: Failure(413)),
    ((UnreadablePostError,), _unreadable),
    ((SuspiciousOperation,), lambda _: Failure(400)),
    (
        (OperationalError, InterfaceError, RedisError),
        lambda _: Failure(503, headers=RETRY_AFTER),
    ),
)


def failure_of(error: BaseException | None) -> Failure | None:
    """Return what a foreign exception means to a caller; None if it is unforeseen."""
    for kinds, become in _FAILURES:
        if isinstance(error, kinds):
            return become(error)
    return None
