"""Let scripts of other sites call `/graphql`, from the origins that CATALOG_CORS_ORIGINS lists.

The address ignores cookies, so responses never allow credentials. The origins only decide which
sites' pages may read the catalogue; a token decides about changes.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

from catalog.conf import option

PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST",
    # The star does not stand for Authorization (Fetch, "CORS-preflight fetch").
    "Access-Control-Allow-Headers": "*, Authorization",
    "Access-Control-Max-Age": "86400",
}


def check(origins: Any) -> None:
    """Raise ImproperlyConfigured for a setting that is not a list.

    A text would allow every origin that is a part of it.
    """
    if not isinstance(origins, list | tuple | set | frozenset):
        raise ImproperlyConfigured(
            "CATALOG_CORS_ORIGINS must be a list of origins, such as "
            '["https://shop.example"].'
        )


def preflight(request: HttpRequest) -> HttpResponse | None:
    """Return the response to a preflight request of an allowed origin; None to another request."""
    is_preflight = request.method == "OPTIONS" and (
        "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in request.META
    )
    if not is_preflight or _allowed(request) is None:
        return None
    return HttpResponse(status=204, headers=PREFLIGHT)


def with_cors(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Let the page of an allowed origin read a response."""
    if not option("CATALOG_CORS_ORIGINS"):
        return response
    patch_vary_headers(response, ["Origin"])
    if origin := _allowed(request):
        response["Access-Control-Allow-Origin"] = origin
        # When to retry, and the id to report.
        response["Access-Control-Expose-Headers"] = "Retry-After, X-Request-Id"
    return response


def _allowed(request: HttpRequest) -> str | None:
    """Return what the response may name as the origin; None if the origin is not allowed."""
    origins = option("CATALOG_CORS_ORIGINS")
    if "*" in origins:
        return "*"
    origin: str | None = request.META.get("HTTP_ORIGIN")
    return origin if origin in origins else None
