"""What logins may cost: so many from one address, two password hashes at once per process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from threading import BoundedSemaphore

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from redis.exceptions import RedisError

from recording.oauth import throttles
from recording.oauth.errors import OAuthError

log = structlog.stdlib.get_logger("signpost.oauth")

HASHES_AT_ONCE = 2
WAITING = 2
WAIT_S = 2.0

View = Callable[..., HttpResponse]


class LoginBusyError(OAuthError):
    """As many logins as one process checks at a time are being checked."""

    status = 503
    description = "Too many people are logging in at this moment."


class Turns:
    """Lets a few threads run, a few more wait for them, and refuses all others at once.

    A password hash takes a processor for a third of a second, on purpose, and the threads of a
    web process are few: logins never get more than half of them.
    """

    def __init__(self, *, threads: int) -> None:
        present = max(1, min(HASHES_AT_ONCE + WAITING, threads // 2))
        self._present = BoundedSemaphore(present)
        self._running = BoundedSemaphore(min(HASHES_AT_ONCE, present))

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait briefly and run; raises LoginBusyError when too many do already."""
        if not self._present.acquire(blocking=False):
            raise LoginBusyError(retry_after=1)
        try:
            if not self._running.acquire(timeout=WAIT_S):
                raise LoginBusyError(retry_after=1)
            try:
                yield
            finally:
                self._running.release()
        finally:
            self._present.release()


@cache
def turns() -> Turns:
    """Return the one of this process."""
    return Turns(threads=settings.WEB_THREADS)


def limited(view: View) -> View:
    """Let a login view check a password only as often, and as many at once, as is allowed."""

    @wraps(view)
    def answer(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if request.method != "POST":
            return view(request, *args, **kwargs)
        try:
            _count(request)
            with turns().turn():
                return view(request, *args, **kwargs)
        except OAuthError as error:
            return refused(request, error)

    return answer


def _count(request: HttpRequest) -> None:
    """Count a login of this address; raises TooManyRequestsError.

    Without Redis nothing is counted: operators need the admin most when something is away, and
    the lock is in the database.
    """
    try:
        throttles.check(request, "login")
    except RedisError:
        log.warning("login throttle unavailable", exc_info=True)


def refused(request: HttpRequest, error: OAuthError) -> HttpResponse:
    """Tell a person when to try to log in again, and where."""
    context = {"error": error, "address": request.get_full_path()}
    answer = render(request, "accounts/refused.html", context, status=error.status)
    answer["Retry-After"] = str(error.retry_after)
    return answer
