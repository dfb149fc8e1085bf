"""The endpoints that clients call: metadata, registration, token, revocation."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from oauth2_provider.views.mixins import OAuthLibMixin
from oauthlib.oauth2 import OAuth2Error, UnsupportedGrantTypeError

from recording import cors
from recording.oauth import metadata, parameters, registration
from recording.oauth.errors import (
    OAuthError,
    error_response,
    method_not_allowed,
    respond,
    too_many_requests,
)
from recording.throttles import client_address, seconds_to_wait

Answer = Callable[..., Any]  # an HttpResponse
CACHEABLE = {"Cache-Control": "max-age=300"}
NOT_STORED = {"Cache-Control": "no-store"}
REQUIRED = {
    "authorization_code": ("code", "redirect_uri", "code_verifier"),
    "refresh_token": ("refresh_token",),
}


def check_rate(request: HttpRequest, scope: str) -> None:
    """Count a request of this address. Raises OAuthError."""
    if seconds := seconds_to_wait(request, scope):
        text = "Too many requests from this address."
        raise too_many_requests(text, retry_after=seconds)


def endpoint(*methods: str, rate: str = "") -> Callable[[Answer], Answer]:
    """Return a decorator for a view that scripts of any site may call.

    An error becomes JSON in the shape of RFC 6749 section 5.2; of any other failure
    config/errors.py makes the same.
    """
    allowed = (*methods, "OPTIONS")

    def decorate(view: Answer) -> Answer:
        @csrf_exempt
        @sensitive_post_parameters()
        @wraps(view)
        def answer(request: HttpRequest, **kwargs: str) -> HttpResponse:
            if request.method == "OPTIONS":
                headers = NOT_STORED | {"Allow": ", ".join(allowed)}
                preflight = HttpResponse(status=204, headers=headers)
                return cors.with_cors(preflight, methods=methods)
            try:
                if request.method not in methods:
                    raise method_not_allowed(allowed)
                if rate:
                    check_rate(request, rate)
                response: HttpResponse = view(request, **kwargs)
            except OAuth2Error as error:
                response = error_response(error)
            return cors.with_cors(response)

        return answer

    return decorate


@endpoint("GET", "HEAD")
def authorization_server(request: HttpRequest) -> HttpResponse:
    """GET /.well-known/oauth-authorization-server."""
    return respond(metadata.authorization_server(), headers=CACHEABLE)


@endpoint("GET", "HEAD")
def protected_resource(request: HttpRequest, path: str = "") -> HttpResponse:
    """GET /.well-known/oauth-protected-resource, also with the path of the MCP server behind it."""
    path = f"/{path}" if path else ""
    if path not in metadata.RESOURCE_PATHS:
        text = "There is no protected resource at this path."
        raise OAuthError(text, status=404)
    return respond(metadata.protected_resource(path), headers=CACHEABLE)


@endpoint("POST", rate="register")
def register(request: HttpRequest) -> HttpResponse:
    """POST /oauth/register (RFC 7591 section 3).

    Not the toolkit's view, which refuses what real applications send: several addresses and grants
    (test_popular_clients.py).
    """
    if request.content_type != "application/json":
        text = "The body must be application/json."
        raise OAuthError(text, "invalid_client_metadata")
    given, address = parameters.body_of(request), client_address(request)
    return respond(registration.register(given, address=address), status=201)


@endpoint("POST", rate="token")
def token(request: HttpRequest) -> HttpResponse:
    """POST /oauth/token.

    Not the toolkit's view, which takes the last of repeated parameters, and fails for a token that
    is revoked at the same moment (test_attacks.py, test_refresh.py).
    """
    form = parameters.read_form(request)
    form.require("grant_type")
    if (grant_type := form.get("grant_type")) not in REQUIRED:
        text = f"The grant types are {' and '.join(metadata.GRANT_TYPES)}."
        raise UnsupportedGrantTypeError(text)
    form.require(*REQUIRED[grant_type])
    return _answered(server().create_token_response, request, form)


@endpoint("POST", rate="token")
def revoke(request: HttpRequest) -> HttpResponse:
    """POST /oauth/revoke (RFC 7009)."""
    form = parameters.read_form(request)
    form.require("token")
    return _answered(server().create_revocation_response, request, form)


@cache
def server() -> Any:
    """Return oauthlib's server with the validator of the settings."""
    return OAuthLibMixin.get_server()


def _answered(
    respond: Callable[..., tuple[dict[str, str], str | None, int]],
    request: HttpRequest,
    form: parameters.Parameters,
) -> HttpResponse:
    """Let oauthlib answer a form of which it sees only what was read strictly."""
    form.check_target()
    credentials = {"Authorization": request.headers.get("Authorization", "")}
    headers, body, status = respond(request.path, "POST", form.pairs(), credentials)
    headers |= {"Content-Type": "application/json"} | NOT_STORED
    return HttpResponse(body or "", status=status, headers=headers)
