"""The toolkit's OAuth server, which gets only parameters that were read strictly."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.conf import settings
from oauth2_provider.views.mixins import OAuthLibMixin
from oauthlib.common import Request
from oauthlib.oauth2 import InvalidScopeError

from recording.oauth import resources
from recording.oauth.clients import SCOPE
from recording.oauth.errors import InvalidTargetError
from recording.oauth.models import Application
from recording.oauth.parameters import Parameters


@cache
def server() -> Any:
    """Return the server that the setting OAUTH2_PROVIDER describes."""
    return OAuthLibMixin.get_server()


def oauthlib_request(
    parameters: Parameters, *, client: Application, user: Any = None
) -> Any:
    """Return oauthlib's request of a known client: known parameters only, no headers.

    Raises InvalidScopeError, and InvalidTargetError for a resource of another server (RFC 8707
    section 2).
    """
    if not set(parameters.get("scope").split()) <= {SCOPE}:
        raise InvalidScopeError(f"The only scope is {SCOPE}.")
    for resource in parameters.resources:
        if not resources.is_ours(resource, issuer=settings.BASE_URL):
            raise InvalidTargetError
    # A scope that is missing or repeated becomes the only one.
    body = parameters.values | {"scope": SCOPE}
    request = Request("/", "POST", body=list(body.items()))
    request.client, request.user = client, user
    request.client_id = client.client_id
    request.resource = list(parameters.resources)
    return request
