"""What Django's middleware does for every request, for chat, which does without Django.

What chat may not answer by itself goes to Django, whose middleware refuses or redirects it.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest

Scope = MutableMapping[str, Any]


def has_allowed_host(request: HttpRequest) -> bool:
    """Return whether a request's Host is one of ALLOWED_HOSTS."""
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True


@lru_cache(maxsize=256)
def _is_allowed(host: bytes, _: tuple[str, ...]) -> bool:
    """Return what Django says of a Host header while ALLOWED_HOSTS is this."""
    request = HttpRequest()
    request.META["HTTP_HOST"] = host.decode("latin-1")
    return has_allowed_host(request)


def is_for_us(scope: Scope) -> bool:
    """Return whether a request has one Host, and ALLOWED_HOSTS has it."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    return len(hosts) == 1 and _is_allowed(hosts[0], tuple(settings.ALLOWED_HOSTS))


def admits(scope: Scope) -> bool:
    """Return whether a request needs no refusal and no redirect by Django's middleware."""
    is_safe = not settings.SECURE_SSL_REDIRECT or _is_secure(scope)
    return is_safe and is_for_us(scope)


def security_headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    """Return what Django's SecurityMiddleware adds to the answer of an API."""
    found = [(b"X-Content-Type-Options", b"nosniff")]
    if settings.SECURE_HSTS_SECONDS and _is_secure(scope):
        found.append((b"Strict-Transport-Security", _hsts()))
    return found


def _is_secure(scope: Scope) -> bool:
    """Return what Django's is_secure() would."""
    if settings.SECURE_PROXY_SSL_HEADER:
        for name, value in scope["headers"]:
            if name == b"x-forwarded-proto":
                return bool(value.partition(b",")[0].strip() == b"https")
    return bool(scope.get("scheme") == "https")


def _hsts() -> bytes:
    text = f"max-age={settings.SECURE_HSTS_SECONDS}"
    if settings.SECURE_HSTS_INCLUDE_SUBDOMAINS:
        text += "; includeSubDomains"
    return (text + ("; preload" if settings.SECURE_HSTS_PRELOAD else "")).encode()
