"""What all login views share: limits of rate and of simultaneous hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, wraps
from threading import BoundedSemaphore

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from redis.exceptions import RedisError

from recording.oauth import throttles
from recording.oauth.errors import OAuthError, error_page

log = structlog.stdlib.get_logger("signpost.oauth")

HASHES_AT_ONCE = 2
WAITING = 2
WAIT_S = 2.0

View = Callable[..., HttpResponse]


class LoginBusyError(OAuthError):
    """The process checks as many passwords simultaneously as it may."""

    status_code = 503
    description = "Too many people are logging in at this moment."
    retry_after = 1


class LoginSlots:
    """Runs a few logins simultaneously, lets a few more wait, and refuses all others.

    A password hash takes a processor for a third of a second, on purpose, and a web process has
    few threads: logins never occupy more than half of them.
    """

    def __init__(self, *, threads: int) -> None:
        admitted = max(1, min(HASHES_AT_ONCE + WAITING, threads // 2))
        self._admitted = BoundedSemaphore(admitted)
        self._running = BoundedSemaphore(min(HASHES_AT_ONCE, admitted))

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait briefly for a free slot. Raises LoginBusyError."""
        with ExitStack() as stack:
            for semaphore, timeout in ((self._admitted, 0), (self._running, WAIT_S)):
                if not semaphore.acquire(timeout=timeout):
                    raise LoginBusyError
                stack.callback(semaphore.release)
            yield


@cache
def login_slots() -> LoginSlots:
    """Return the slots of this process."""
    return LoginSlots(threads=settings.WEB_THREADS)


def limited(view: View) -> View:
    """Limit how often, and how many simultaneously, a login view checks passwords."""

    @wraps(view)
    def limited_view(
        request: HttpRequest, *args: object, **kwargs: object
    ) -> HttpResponse:
        if request.method != "POST":
            return view(request, *args, **kwargs)
        try:
            count(request)
            with login_slots().slot():
                return view(request, *args, **kwargs)
        except LoginBusyError as error:
            return refused(request, error)
        except OAuthError as error:
            return refused(request, error)

    return limited_view


def count(request: HttpRequest) -> None:
    """Count a login of this address. Raises TooManyRequestsError.

    Without Redis nothing is counted: operators need the admin most when a service is
    unavailable, and the lock after failed logins is in the database.
    """
    try:
        throttles.check(request, "login")
    except RedisError:
        log.warning("login throttle unavailable", exc_info=True)


def refused(request: HttpRequest, error: OAuthError) -> HttpResponse:
    """Return the page that says when to try again, with a link back to the login."""
    address = request.get_full_path()
    return error_page(request, "accounts/refused.html", error, address=address)
