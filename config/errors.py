"""Errors outside the products' views, in the format of the product that owns the address."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.views import defaults

from catalog import views as catalog
from gateway import errors as gateway
from gateway.chat import views as chat
from recording import errors as recording
from recording.oauth import errors as oauth
from webhooks_core.web.errors import failure_of

# The arguments are the request, the status that Django would send, and the exception.
Responder = Callable[[HttpRequest, int, BaseException | None], HttpResponse]

# Responders of errors at and below a prefix; the longest prefix decides.
OWNERS: dict[str, Responder] = {
    "/v1": recording.HANDLER.response_for,
    "/mcp": recording.HANDLER.response_for,
    "/v1/webhooks/subscriptions": gateway.HANDLER.response_for,
    "/v1/ingest": gateway.HANDLER.response_for,
    "/v1/events": gateway.HANDLER.response_for,
    "/v1/keys": gateway.HANDLER.response_for,
    "/v1/portal": gateway.HANDLER.response_for,
    "/v1/requests": gateway.HANDLER.response_for,
    "/v1/usage": gateway.HANDLER.response_for,
    "/v1/chat": chat.response_for,
    "/v1/models": chat.response_for,
    "/v1/embeddings": chat.response_for,
    "/v1/responses": chat.response_for,
    "/v1/messages": chat.response_for,
    "/chat": chat.response_for,
    "/v2": chat.response_for,
    "/graphql": catalog.response_for,
    "/.well-known": oauth.response_for,
    "/oauth/register": oauth.response_for,
    "/oauth/token": oauth.response_for,
    "/oauth/revoke": oauth.response_for,
}

# No prefix of OWNERS has more parts. What follows them does not change the owner.
MAX_PREFIX_PARTS = max(prefix.count("/") for prefix in OWNERS)
SLASHES = re.compile("/+")


UNAVAILABLE = """<!doctype html>
<html lang="en">
<title>503 Service Unavailable</title>
<h1>Service Unavailable</h1>
<p>A required service is temporarily unavailable, or the database took too long. Try again.</p>
</html>
"""


def owner(path: str) -> Responder | None:
    """Return the responder for a path; None means Django's own pages.

    Repeated slashes count as one: recording answers 404 for `//v1/webhooks`.
    """
    parts = SLASHES.split(path, MAX_PREFIX_PARTS + 1)[: MAX_PREFIX_PARTS + 1]
    prefixes = ("/".join(parts[:end]) for end in range(len(parts), 1, -1))
    return next((OWNERS[prefix] for prefix in prefixes if prefix in OWNERS), None)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that Django refused, such as a form that is too large (handler400)."""
    response = _product_response(request, 400, exception)
    return response or defaults.bad_request(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer an unknown address (handler404)."""
    response = _product_response(request, 404, exception)
    return response or defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer an exception (handler500), which Django has logged and is still handling."""
    error = sys.exception()
    if response := _product_response(request, 500, error):
        return response
    failure = failure_of(error)
    if failure is None or failure.status != 503:
        return defaults.server_error(request)
    # No template: its context would read the session from the database.
    return HttpResponse(UNAVAILABLE, status=503, headers=failure.headers)


def _product_response(
    request: HttpRequest, status: int, error: BaseException | None
) -> HttpResponse | None:
    respond = owner(request.path)
    return respond(request, status, error) if respond else None
