"""The token and revocation endpoints: trade codes and refresh tokens for token pairs, end them."""

from __future__ import annotations

from typing import Any

from oauth2_provider.models import RefreshToken
from oauthlib.oauth2 import UnsupportedGrantTypeError

from recording.oauth import grants
from recording.oauth.clients import GRANT_TYPES
from recording.oauth.models import Application
from recording.oauth.parameters import Parameters
from recording.oauth.toolkit import oauthlib_request, server
from webhooks_core.models import bearer

REQUIRED_PARAMETERS = {
    "authorization_code": ("code", "redirect_uri", "code_verifier"),
    "refresh_token": ("refresh_token",),
}


def exchange(application: Application, parameters: Parameters) -> dict[str, Any]:
    """Return the token response for a code or a refresh token. Raises OAuth2Error."""
    parameters.require("grant_type")
    grant_type = parameters.get("grant_type")
    if grant_type not in REQUIRED_PARAMETERS:
        raise UnsupportedGrantTypeError(
            f"The grant types are {' and '.join(GRANT_TYPES)}."
        )
    parameters.require(*REQUIRED_PARAMETERS[grant_type])
    request = oauthlib_request(parameters, client=application)
    grant = server().grant_types[grant_type]
    grant.validate_token_request(request)
    token: dict[str, Any] = server().bearer.create_token(request, refresh_token=True)
    grant.request_validator.save_bearer_token(token, request)
    return token


def revoke(application: Application, parameters: Parameters) -> None:
    """End the connection that a token belongs to, if it is this application's (RFC 7009).

    Either kind of token ends the whole connection, so `token_type_hint` is not needed. An
    unknown token is no error.
    """
    parameters.require("token")
    digest = bearer.digest(parameters.get("token"))
    refresh_tokens = RefreshToken.objects.filter(
        application=application
    ).select_related("user")
    token = (
        refresh_tokens.filter(token_checksum=digest).first()
        or refresh_tokens.filter(access_token__token_checksum=digest).first()
    )
    if token:
        grants.end(token)
