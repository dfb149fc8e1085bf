"""The checks and headers of Django's middleware, for chat requests that do not run through it.

A request that fails a check goes to Django, whose middleware refuses or redirects it.
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
    """Return True if the request's Host is one of ALLOWED_HOSTS."""
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True


@lru_cache(maxsize=256)
def _is_allowed(host: bytes, _allowed_hosts: tuple[str, ...]) -> bool:
    """Return Django's decision about a Host header; it depends on ALLOWED_HOSTS."""
    request = HttpRequest()
    request.META["HTTP_HOST"] = host.decode("latin-1")
    return has_allowed_host(request)


def has_one_allowed_host(scope: Scope) -> bool:
    """Return True if the request has exactly one Host, which ALLOWED_HOSTS accepts."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    return len(hosts) == 1 and _is_allowed(hosts[0], tuple(settings.ALLOWED_HOSTS))


def passes_middleware(scope: Scope) -> bool:
    """Return True if Django's middleware would neither refuse nor redirect the request."""
    needs_redirect = settings.SECURE_SSL_REDIRECT and not _is_secure(scope)
    return not needs_redirect and has_one_allowed_host(scope)


def security_headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    """Return the headers that Django's SecurityMiddleware adds to an API's response."""
    headers = [(b"X-Content-Type-Options", b"nosniff")]
    if settings.SECURE_HSTS_SECONDS and _is_secure(scope):
        headers.append((b"Strict-Transport-Security", _hsts()))
    return headers


def _is_secure(scope: Scope) -> bool:
    """Return what Django's `request.is_secure()` would return."""
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
