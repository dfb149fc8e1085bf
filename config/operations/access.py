"""Who may see the state of the system: staff, a holder of the metrics token, this machine."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.http import HttpRequest

from config.environment import is_loopback
from config.serving import front

# Whoever sends one of these stands behind a proxy: then the peer's address tells nothing.
_PROXY_HEADERS = ("FORWARDED", "VIA", "X_REAL_IP")


def may_see_state(request: HttpRequest) -> bool:
    """Tell whether a request may see figures and faults.

    Raises django.db.Error when that needs the database (a session) and it is away.
    """
    return is_local(request) or _has_token(request) or _is_staff(request)


def is_local(request: HttpRequest) -> bool:
    """Tell whether a process of this machine asks, and no proxy for somebody else.

    A browser may ask for a page of another site whose name leads here: then the Host is not ours.
    """
    proxied = any(
        name.removeprefix("HTTP_") in _PROXY_HEADERS
        or name.startswith("HTTP_X_FORWARDED_")
        for name in request.META
    )
    is_near = not proxied and is_loopback(request.META.get("REMOTE_ADDR", ""))
    return is_near and front.has_allowed_host(request)


def _has_token(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    expected = settings.METRICS_TOKEN
    return (
        bool(expected)
        and scheme.lower() == "bearer"
        and hmac.compare_digest(token.strip().encode(), expected.encode())
    )


def _is_staff(request: HttpRequest) -> bool:
    return request.user.is_active and request.user.is_staff
