"""An error of the OAuth endpoints: JSON with a top-level `error` (RFC 6749 section 5.2), or a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from oauthlib.oauth2 import OAuth2Error

from recording import cors
from webhooks_core.web.errors import failure_of


class OAuthError(OAuth2Error):
    """Any error, by its code; oauthlib has no class for most of ours, and none with headers."""

    headers: Mapping[str, str] = {}

    def __init__(
        self,
        description: str,
        code: str = "invalid_request",
        *,
        status: int = 400,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(description, status_code=status)
        self.error, self.headers = code, headers or {}


def invalid_client(
    text: str = "Unknown client, or wrong client authentication.",
) -> OAuthError:
    """Return the failure of client authentication, with the challenge of RFC 6749 section 5.2."""
    headers = {"WWW-Authenticate": 'Basic realm="oauth", charset="UTF-8"'}
    return OAuthError(text, "invalid_client", status=401, headers=headers)


def too_many_requests(text: str, *, retry_after: int) -> OAuthError:
    headers = {"Retry-After": str(retry_after)}
    return OAuthError(text, "temporarily_unavailable", status=429, headers=headers)


def method_not_allowed(methods: tuple[str, ...]) -> OAuthError:
    """Return the error for a method that an address does not have."""
    text = f"Use {' or '.join(methods)}."
    return OAuthError(text, status=405, headers={"Allow": ", ".join(methods)})


def respond(
    body: dict[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """Return JSON that no cache may keep (RFC 6749 section 5.1)."""
    headers = {"Cache-Control": "no-store", **(headers or {})}
    return JsonResponse(body, status=status, headers=headers)


def error_response(error: OAuth2Error) -> HttpResponse:
    """Return an error, ours or oauthlib's, as JSON."""
    body = {"error": error.error, "error_description": error.description or ""}
    return respond(body, status=error.status_code, headers=error.headers)


def error_page(request: HttpRequest, error: OAuth2Error) -> HttpResponse:
    """Return an error as a page for the user, without a redirect."""
    context = {"error": error}
    response = render(request, "oauth/error.html", context, status=error.status_code)
    for name, value in error.headers.items():
        response[name] = value
    return response


def response_for(
    _request: HttpRequest, status: int, exception: BaseException | None
) -> HttpResponse:
    """Return the response where no view answered: unknown addresses, what Django refused, faults."""
    failure = failure_of(exception)
    error = OAuthError("The request is malformed.")
    if status == 404:
        error = OAuthError("There is nothing at this address.", status=404)
    elif failure and failure.status == 503:
        text = "A needed service is away; try again."
        code = "temporarily_unavailable"
        error = OAuthError(text, code, status=503, headers=failure.headers)
    elif status == 500:
        error = OAuthError("The server failed; try again.", "server_error", status=500)
    return cors.with_cors(error_response(error))
