"""Errors outside the products' views, in the shape of the product that owns the address.

An answer is a function of the request, the status that Django would send, and the exception.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.views import defaults

from catalog import views as catalog
from gateway import errors as gateway
from gateway.chat import views as chat
from recording import errors as recording
from recording.oauth import errors as oauth
from webhooks_core.api.exception_mapping import failure_of

Answer = Callable[[HttpRequest, int, BaseException | None], HttpResponse]

# Who answers at and below a prefix; the longest that fits decides.
OWNERS: dict[str, Answer] = {
    "/v1": recording.HANDLER.response_for,
    "/v1/webhooks/subscriptions": gateway.HANDLER.response_for,
    "/v1/ingest": gateway.HANDLER.response_for,
    "/v1/usage": gateway.HANDLER.response_for,
    "/v1/chat": chat.response_for,
    "/v1/models": chat.response_for,
    "/v1/embeddings": chat.response_for,
    "/v2": chat.response_for,
    "/graphql": catalog.response_for,
    "/.well-known": oauth.response_for,
    "/oauth/register": oauth.response_for,
    "/oauth/token": oauth.response_for,
    "/oauth/revoke": oauth.response_for,
}


UNAVAILABLE = """<!doctype html>
<html lang="en">
<title>503 Service Unavailable</title>
<h1>Service Unavailable</h1>
<p>A needed service is away, or the database took too long. Try again.</p>
</html>
"""


def owner(path: str) -> Answer | None:
    """Return who answers for a path; None leaves it to Django's own pages.

    Slashes too many change nothing: `//v1/webhooks` is nowhere, and still recording's to say so.
    """
    parts = [part for part in path.split("/") if part]
    prefixes = ("/" + "/".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((OWNERS[prefix] for prefix in prefixes if prefix in OWNERS), None)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer what Django refused: a bad Host header, too large a form, … (handler400)."""
    if answer := owner(request.path):
        return answer(request, 400, exception)
    return defaults.bad_request(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer an unknown address (handler404)."""
    if answer := owner(request.path):
        return answer(request, 404, exception)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer a crash (handler500); Django has logged it and still handles the exception."""
    error = sys.exception()
    if answer := owner(request.path):
        return answer(request, 500, error)
    failure = failure_of(error)
    if failure is None or failure.status != 503:
        return defaults.server_error(request)
    # No template: its context would ask the database who is logged in.
    return HttpResponse(UNAVAILABLE, status=503, headers=failure.headers)
