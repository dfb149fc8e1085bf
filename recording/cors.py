"""Let scripts of any site call addresses that take a token or a client's authentication.

These addresses ignore cookies, and responses with `*` forbid credentials: another site gets
nothing that it could not get by its own server. The account's pages, above all the consent page,
send none of these headers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from django.http import HttpResponse

# A client reads the challenge, when to retry, and the id to report.
CORS_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "WWW-Authenticate, Retry-After, X-Request-Id",
}
Response = TypeVar("Response", bound=HttpResponse)


def with_cors(response: Response, *, methods: Sequence[str] = ()) -> Response:
    """Let any site read a response; with `methods` it also answers a preflight request."""
    headers = dict(CORS_HEADERS)
    if methods:
        headers |= {
            "Access-Control-Allow-Methods": ", ".join(methods),
            # The star does not stand for Authorization (Fetch, "CORS-preflight fetch").
            "Access-Control-Allow-Headers": "*, Authorization",
            "Access-Control-Max-Age": "86400",
        }
    for name, value in headers.items():
        response[name] = value
    return response
