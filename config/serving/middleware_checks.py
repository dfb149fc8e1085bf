"""The checks and headers of Django's middleware, for chat requests that do not run through it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpResponse
from django.middleware.security import SecurityMiddleware

API_HEADERS = ("X-Content-Type-Options", "Strict-Transport-Security")

Header = tuple[bytes, bytes]


def security_headers(
    headers: Mapping[str, str], scheme: str
) -> tuple[Header, ...] | None:
    """Return the headers that Django's SecurityMiddleware adds to an API's response.

    None if Django would refuse the request's Host or redirect to https: it shall do so.
    """
    host, proto = headers.get("host", ""), headers.get("x-forwarded-proto", "")
    return _checked(host, proto, scheme, tuple(settings.ALLOWED_HOSTS))


@lru_cache(maxsize=256)
def _checked(
    host: str, proto: str, scheme: str, _allowed_hosts: tuple[str, ...]
) -> tuple[Header, ...] | None:
    environ = {
        "REQUEST_METHOD": "POST",
        "HTTP_HOST": host,
        "HTTP_X_FORWARDED_PROTO": proto,
        "wsgi.url_scheme": scheme,
        "wsgi.input": BytesIO(),
    }
    request = WSGIRequest(environ)
    security = SecurityMiddleware(lambda _: HttpResponse())
    try:
        request.get_host()
    except DisallowedHost:
        return None
    if security.process_request(request):
        return None
    headers = security.process_response(request, HttpResponse()).headers
    return tuple(
        (name.encode(), headers[name].encode())
        for name in API_HEADERS
        if name in headers
    )
