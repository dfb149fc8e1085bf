"""The endpoints that clients call: metadata, registration, token, revocation."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from oauth2_provider.views.mixins import OAuthLibMixin
from oauthlib.oauth2 import OAuth2Error, UnsupportedGrantTypeError

from recording import cors
from recording.oauth import metadata, parameters, registration
from recording.oauth.errors import (
    InvalidClientMetadataError,
    InvalidRequestError,
    ServerError,
    TooManyRequestsError,
    UnavailableError,
    error_response,
    method_not_allowed,
    respond,
)
from recording.throttles import client_address, seconds_to_wait
from webhooks_core.database.outages import is_outage, is_redis_error

log = structlog.stdlib.get_logger("signpost.oauth")

Answer = Callable[..., Any]  # an HttpResponse
CACHEABLE = {"Cache-Control": "max-age=300"}
NOT_STORED = {"Cache-Control": "no-store"}
REQUIRED = {
    "authorization_code": ("code", "redirect_uri", "code_verifier"),
    "refresh_token": ("refresh_token",),
}


def check_rate(request: HttpRequest, scope: str) -> None:
    """Count a request of this address. Raises TooManyRequestsError."""
    if seconds := seconds_to_wait(request, scope):
        text = "Too many requests from this address."
        raise TooManyRequestsError(text, retry_after=seconds)


def endpoint(*methods: str, rate: str = "") -> Callable[[Answer], Answer]:
    """Return a decorator for a view that scripts of any site may call.

    Every failure becomes JSON in the shape of RFC 6749 section 5.2: the toolkit's views leave some
    to Django, as pages (test_attacks.py `test_a_malformed_token_request_changes_nothing`).
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
            except Exception as error:  # clients expect JSON in any case
                response = error_response(_oauth_error(error))
            return cors.with_cors(response)

        return answer

    return decorate


def _oauth_error(error: Exception) -> OAuth2Error:
    """Return an exception as an error that the client may see; log any other kind."""
    if isinstance(error, OAuth2Error):
        return error
    if is_outage(error) or is_redis_error(error):
        log.error("dependency unavailable", exc_info=error)
        return UnavailableError()
    log.error("oauth request failed", exc_info=error)
    return ServerError()


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
        raise InvalidRequestError(text, status=404)
    return respond(metadata.protected_resource(path), headers=CACHEABLE)


@endpoint("POST", rate="register")
def register(request: HttpRequest) -> HttpResponse:
    """POST /oauth/register (RFC 7591 section 3).

    Not the toolkit's view, which refuses what real applications send: several addresses and grants
    (test_popular_clients.py).
    """
    if request.content_type != "application/json":
        raise InvalidClientMetadataError("The body must be application/json.")
    given = registration.Metadata.parse(parameters.body_of(request))
    application, secret = registration.register(
        metadata=given, address=client_address(request)
    )
    body = registration.registered(application, secret, grant_types=given.grant_types)
    return respond(body, status=201)


class _FormView(OAuthLibMixin, View):
    """Calls the toolkit's server, and answers JSON."""

    oauthlib_backend_class = parameters.StrictCore

    def respond(self, answer: tuple[Any, dict[str, str], str, int]) -> HttpResponse:
        _, headers, body, status = answer
        fixed = {"Content-Type": "application/json"} | NOT_STORED
        return HttpResponse(body, status=status, headers={**headers, **fixed})


class _TokenView(_FormView):
    """Not the toolkit's view, which fails for a token that is revoked at the same moment.

    The test is test_refresh.py `test_no_refresh_slips_past_a_revocation`.
    """

    def post(self, request: HttpRequest) -> HttpResponse:
        form = parameters.read_form(request)
        form.require("grant_type")
        if (grant_type := form.get("grant_type")) not in REQUIRED:
            raise UnsupportedGrantTypeError(
                f"The grant types are {' and '.join(metadata.GRANT_TYPES)}."
            )
        form.require(*REQUIRED[grant_type])
        return self.respond(self.create_token_response(request))


class _RevocationView(_FormView):
    def post(self, request: HttpRequest) -> HttpResponse:
        parameters.read_form(request).require("token")
        return self.respond(self.create_revocation_response(request))


token = endpoint("POST", rate="token")(_TokenView.as_view())
revoke = endpoint("POST", rate="token")(_RevocationView.as_view())
