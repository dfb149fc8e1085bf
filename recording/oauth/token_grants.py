"""The token and revocation endpoints' work: codes and refresh tokens in, token pairs out."""

from __future__ import annotations

from typing import Any

from oauth2_provider.models import RefreshToken
from oauthlib.oauth2 import OAuth2Error

from recording.oauth import connections
from recording.oauth.clients import GRANT_TYPES
from recording.oauth.errors import OAuthError
from recording.oauth.models import Application
from recording.oauth.parameters import Parameters
from recording.oauth.toolkit import request_of, server, translated
from webhooks_core.api import tokens

REQUIRED = {
    "authorization_code": ("code", "redirect_uri", "code_verifier"),
    "refresh_token": ("refresh_token",),
}


class UnsupportedGrantTypeError(OAuthError):
    """Anything but a code or a refresh token."""

    code = "unsupported_grant_type"
    description = f"The grant types are {' and '.join(GRANT_TYPES)}."


def exchange(application: Application, parameters: Parameters) -> dict[str, Any]:
    """Return the token response for a code or a refresh token; raises OAuthError."""
    parameters.require("grant_type")
    grant_type = parameters.get("grant_type")
    if grant_type not in REQUIRED:
        raise UnsupportedGrantTypeError
    parameters.require(*REQUIRED[grant_type])
    request = request_of(parameters, client=application)
    grant = server().grant_types[grant_type]
    try:
        grant.validate_token_request(request)
        token: dict[str, Any] = server().bearer.create_token(
            request, refresh_token=True
        )
        grant.request_validator.save_bearer_token(token, request)
    except OAuth2Error as error:
        raise translated(error) from error
    return token


def revoke(application: Application, parameters: Parameters) -> None:
    """End the connection that a token belongs to, if it is this application's (RFC 7009).

    Either kind of token ends the whole connection; `token_type_hint` is not needed to tell them
    apart. An unknown token is no error.
    """
    parameters.require("token")
    digest = tokens.digest(parameters.get("token"))
    mine = RefreshToken.objects.filter(application=application)
    found = (
        mine.filter(token_checksum=digest).first()
        or mine.filter(access_token__token_checksum=digest).first()
    )
    if found:
        connections.revoke_family(found.token_family, user_id=found.user_id)
