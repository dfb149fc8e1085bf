"""The toolkit's OAuth server, fed with parameters that were read strictly."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.conf import settings
from oauth2_provider.views.mixins import OAuthLibMixin
from oauthlib.common import Request
from oauthlib.oauth2 import OAuth2Error

from recording.oauth import resources
from recording.oauth.clients import SCOPE
from recording.oauth.errors import InvalidScopeError, InvalidTargetError, OAuthError
from recording.oauth.models import Application
from recording.oauth.parameters import Parameters

DESCRIPTIONS = {
    "invalid_grant": "The code or token is unknown, expired, used, revoked or not this client's.",
}


@cache
def server() -> Any:
    """Return the server that OAUTH2_PROVIDER describes."""
    return OAuthLibMixin.get_server()


def request_of(parameters: Parameters, *, client: Application, user: Any = None) -> Any:
    """Return oauthlib's request: only known parameters, no headers, the client already known.

    Raises InvalidScopeError, and InvalidTargetError for a resource of another server (RFC 8707
    section 2).
    """
    if not set(parameters.get("scope").split()) <= {SCOPE}:
        raise InvalidScopeError
    for resource in parameters.resources:
        if not resources.is_ours(resource, issuer=settings.BASE_URL):
            raise InvalidTargetError
    # Whoever repeats the scope gets it once.
    given = parameters.values | {"scope": SCOPE}
    request = Request("/", "POST", body=list(given.items()))
    request.client, request.user = client, user
    request.client_id = client.client_id
    request.resource = list(parameters.resources)
    return request


def translated(error: OAuth2Error) -> OAuthError:
    """Return oauthlib's error as ours."""
    ours = OAuthError(error.description or DESCRIPTIONS.get(error.error, ""))
    ours.code, ours.status = error.error, error.status_code
    return ours
