"""Who may see the state of the system: staff, holders of the metrics token, this machine."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest

from config.environment import is_loopback

# A proxy sends these; then the peer's address does not identify the client.
_PROXY_HEADERS = ("FORWARDED", "VIA", "X_REAL_IP")


def may_see_state(request: HttpRequest) -> bool:
    """Return True if a request may see figures and faults.

    Raises django.db.Error when the session has to be read and the database is unavailable.
    """
    return is_local(request) or _has_token(request) or _is_staff(request)


def is_local(request: HttpRequest) -> bool:
    """Return True if a process of this machine sent the request, and not a proxy for a client.

    A browser may load a page of another site whose name resolves to this machine: such a
    request has a Host that is not allowed.
    """
    is_proxied = any(
        name.removeprefix("HTTP_") in _PROXY_HEADERS
        or name.startswith("HTTP_X_FORWARDED_")
        for name in request.META
    )
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return not is_proxied and is_loopback(request.META.get("REMOTE_ADDR", ""))


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
