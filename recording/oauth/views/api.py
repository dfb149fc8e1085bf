"""The endpoints that clients call: metadata, registration, token, revocation."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from recording.oauth import clients, metadata, parameters, resources, token_endpoint
from recording.oauth.errors import (
    InvalidClientMetadataError,
    UnknownAddressError,
    respond,
)
from recording.oauth.models import Application
from recording.oauth.throttles import client_address
from recording.oauth.views.base import oauth_view

CACHEABLE = {"Cache-Control": "max-age=300"}


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
        metadata=metadata, address=client_address(request)
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
