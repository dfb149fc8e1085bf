"""The endpoints that clients call: metadata, registration, token, revocation."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from oauthlib.oauth2 import OAuth2Error
from redis.exceptions import RedisError

from recording import cors
from recording.oauth import (
    clients,
    metadata,
    parameters,
    resources,
    throttles,
    token_endpoint,
)
from recording.oauth.errors import (
    InvalidClientMetadataError,
    MethodNotAllowedError,
    ServerError,
    UnavailableError,
    UnknownAddressError,
    error_response,
    respond,
)
from recording.oauth.models import Application
from webhooks_core.database.outages import is_outage

log = structlog.stdlib.get_logger("signpost.oauth")

View = Callable[..., HttpResponse]
CACHEABLE = {"Cache-Control": "max-age=300"}


def oauth_view(*methods: str, throttle: str = "") -> Callable[[View], View]:
    """Return a decorator for a view that scripts of any site may call.

    Every failure becomes JSON in the shape of RFC 6749 section 5.2.
    """
    allowed = (*methods, "OPTIONS")

    def decorate(view: View) -> View:
        @csrf_exempt
        @sensitive_post_parameters()
        @wraps(view)
        def respond_or_refuse(request: HttpRequest, **kwargs: str) -> HttpResponse:
            if request.method == "OPTIONS":
                response = respond(status=204, headers={"Allow": ", ".join(allowed)})
                return cors.with_cors(response, methods=methods)
            if request.method not in methods:
                return cors.with_cors(error_response(MethodNotAllowedError(allowed)))
            try:
                if throttle:
                    throttles.check(request, throttle)
                response = view(request, **kwargs)
            except Exception as error:  # noqa: BLE001 - clients expect JSON in any case
                response = error_response(_oauth_error(error))
            return cors.with_cors(response)

        return respond_or_refuse

    return decorate


def _oauth_error(error: Exception) -> OAuth2Error:
    """Return an exception as an error that the client may see; log any other kind."""
    if isinstance(error, OAuth2Error):
        return error
    if is_outage(error) or isinstance(error, RedisError):
        log.error("dependency unavailable", exc_info=error)
        return UnavailableError()
    log.error("oauth request failed", exc_info=error)
    return ServerError()


class UnknownResourceError(UnknownAddressError):
    """The path behind the metadata address is not one of the recording API."""

    description = "There is no protected resource at this path."


@oauth_view("GET", "HEAD")
def authorization_server(request: HttpRequest) -> HttpResponse:
    """GET /.well-known/oauth-authorization-server."""
    document = metadata.authorization_server(settings.BASE_URL)
    return respond(document, headers=CACHEABLE)


@oauth_view("GET", "HEAD")
def protected_resource(request: HttpRequest, path: str = "") -> HttpResponse:
    """GET /.well-known/oauth-protected-resource, also with a path of the API behind it."""
    path = f"/{path}" if path else ""
    if not resources.is_protected_path(path):
        raise UnknownResourceError
    document = metadata.protected_resource(settings.BASE_URL, path)
    return respond(document, headers=CACHEABLE)


@oauth_view("POST", throttle="register")
def register(request: HttpRequest) -> HttpResponse:
    """POST /oauth/register (RFC 7591 section 3)."""
    if request.content_type != "application/json":
        raise InvalidClientMetadataError("The body must be application/json.")
    metadata = clients.Metadata.parse(parameters.body_of(request))
    application, secret = clients.register(
        metadata=metadata, address=throttles.client_address(request)
    )
    document = clients.registration(
        application, secret, grant_types=metadata.grant_types
    )
    return respond(document, status=201)


@oauth_view("POST", throttle="token")
def token(request: HttpRequest) -> HttpResponse:
    """POST /oauth/token (RFC 6749 section 3.2)."""
    application, form = _authenticated(request)
    return respond(token_endpoint.exchange(application, form))


@oauth_view("POST", throttle="token")
def revoke(request: HttpRequest) -> HttpResponse:
    """POST /oauth/revoke (RFC 7009).

    It accepts the client's secret by any method: Authlib always sends HTTP Basic here, and a
    refusal would leave the tokens alive.
    """
    application, form = _authenticated(request, any_carrier=True)
    token_endpoint.revoke(application, form)
    return respond()


def _authenticated(
    request: HttpRequest, *, any_carrier: bool = False
) -> tuple[Application, parameters.Parameters]:
    form = parameters.read_form(request)
    authorization = request.headers.get("Authorization", "")
    credentials = clients.Credentials.read(form, authorization)
    return clients.authenticate(credentials, any_carrier=any_carrier), form
