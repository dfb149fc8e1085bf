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
    own_headers: Mapping[str, str] = {}

    def __init__(self, description: str | None = None, *, retry_after: int = 0) -> None:
        super().__init__(description)
        if retry_after:
            self.own_headers = {"Retry-After": str(retry_after)}

    @property
    def headers(self) -> dict[str, str]:
        return dict(self.own_headers)


class InvalidRequestError(OAuthError):
    """A parameter is missing, repeated or malformed."""


class UnknownAddressError(OAuthError):
    status_code = 404
    description = "There is nothing at this address."


class MethodNotAllowedError(OAuthError):
    status_code = 405

    def __init__(self, methods: tuple[str, ...]) -> None:
        super().__init__(f"Use {' or '.join(methods)}.")
        self.own_headers = {"Allow": ", ".join(methods)}


class PayloadTooLargeError(OAuthError):
    status_code = 413
    description = "The body is larger than 64 KiB."


class EncodedBodyError(OAuthError):
    status_code = 415
    description = "Send the body as it is, without Content-Encoding."
    own_headers = {"Accept-Encoding": "identity"}


class InvalidClientError(OAuthError):
    """Client authentication failed; the challenge is that of RFC 6749 section 5.2."""

    status_code = 401
    error = "invalid_client"
    description = "Unknown client, or wrong client authentication."
    own_headers = {"WWW-Authenticate": 'Basic realm="oauth", charset="UTF-8"'}


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
    status_code = 429
    error = "temporarily_unavailable"
    description = "Too many requests from this address."


class UnavailableError(OAuthError):
    status_code = 503
    error = "temporarily_unavailable"
    description = "A needed service is away; try again."
    own_headers = {"Retry-After": "5"}


class ServerError(OAuthError):
    status_code = 500
    error = "server_error"
    description = "The server failed; try again."


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
    if failure and failure.status == UnavailableError.status_code:
        status = failure.status
    kinds = (UnknownAddressError, ServerError, UnavailableError)
    error = next((kind for kind in kinds if kind.status_code == status), None)
    return cors.with_cors(error_response((error or InvalidRequestError)()))
