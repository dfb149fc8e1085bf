"""The errors of the OAuth endpoints: oauthlib's, and those that it has no class for.

As JSON each has a top-level `error` and `error_description` (RFC 6749 section 5.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from oauthlib.oauth2 import OAuth2Error

from recording import cors
from webhooks_core.web.errors import failure_of


class OAuthError(OAuth2Error):
    """An error with a default description, and with headers of its own."""

    error = "invalid_request"
    description = "The request is malformed."
    headers: Mapping[str, str] = {}

    def __init__(
        self,
        description: str | None = None,
        *,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(description, status_code=status)
        self.headers = {**self.headers, **(headers or {})}


class InvalidRequestError(OAuthError):
    """A parameter is missing, repeated or malformed, or the request is not one of this address."""


class InvalidClientError(OAuthError):
    """Client authentication failed; the challenge is that of RFC 6749 section 5.2."""

    status_code = 401
    error = "invalid_client"
    description = "Unknown client, or wrong client authentication."
    headers = {"WWW-Authenticate": 'Basic realm="oauth", charset="UTF-8"'}


class InvalidTargetError(OAuthError):
    """The resource belongs to another server (RFC 8707 section 2)."""

    error = "invalid_target"
    description = "The resource is not one of this server."


class InvalidClientMetadataError(OAuthError):
    """A registration asks for what is not supported (RFC 7591 section 3.2.2)."""

    error = "invalid_client_metadata"


class InvalidRedirectUriError(OAuthError):
    """A registration has an address that the policy refuses (RFC 7591 section 3.2.2)."""

    error = "invalid_redirect_uri"


class TooManyRequestsError(OAuthError):
    """An address sends too much; `retry_after` is in seconds."""

    status_code = 429
    error = "temporarily_unavailable"

    def __init__(self, description: str, *, retry_after: int) -> None:
        super().__init__(description, headers={"Retry-After": str(retry_after)})


class UnavailableError(OAuthError):
    status_code = 503
    error = "temporarily_unavailable"
    description = "A needed service is away; try again."
    headers = {"Retry-After": "5"}


class ServerError(OAuthError):
    status_code = 500
    error = "server_error"
    description = "The server failed; try again."


def method_not_allowed(methods: tuple[str, ...]) -> OAuthError:
    """Return the error for a method that an address does not have."""
    headers = {"Allow": ", ".join(methods)}
    text = f"Use {' or '.join(methods)}."
    return InvalidRequestError(text, status=405, headers=headers)


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
    """Return the response where no OAuth view ran: unknown addresses, requests Django refused."""
    failure = failure_of(exception)
    if status == 404:
        error = InvalidRequestError("There is nothing at this address.", status=404)
    elif failure and failure.status == UnavailableError.status_code:
        error = UnavailableError()
    else:
        error = ServerError() if status == 500 else InvalidRequestError()
    return cors.with_cors(error_response(error))
