"""What the toolkit's server asks: who the client is, which codes and tokens are good, how to keep them.

The toolkit's own answers let a client authenticate by another method than its registered one, store
codes in clear, let two requests use a code or token at the same moment, and return empty tokens in
the leeway (tests: test_attacks.py, test_races.py, test_refresh.py).
"""

from __future__ import annotations

import base64
import re
import uuid
from datetime import timedelta
from typing import Any
from urllib.parse import unquote_plus

from django.contrib.auth.hashers import check_password
from django.db import IntegrityError
from django.utils import timezone
from oauth2_provider.models import AccessToken, RefreshToken, set_token_value
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.oauth2 import InvalidGrantError

from recording.accounts.owners import locked_account
from recording.oauth import grants
from recording.oauth.errors import OAuthError, invalid_client
from recording.oauth.metadata import SCOPE
from recording.oauth.models import Application, AuthMethod, Grant
from webhooks_core.models import bearer

REFRESH_PREFIX = "rec_rt_"
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)
REVOCATION = "/oauth/revoke"
UNKNOWN = "The code or token is unknown, expired, used, revoked or not this client's."


def make_access_token(_request: Any) -> str:
    """Return a new access token; its prefix lets scanners find it in leaks."""
    return bearer.make(grants.ACCESS_PREFIX)


def make_refresh_token(_request: Any) -> str:
    return bearer.make(REFRESH_PREFIX)


class Validator(OAuth2Validator):
    """The toolkit's validator, stricter, with hashed codes that one request alone consumes."""

    # The client.

    def client_authentication_required(self, request: Any) -> bool:
        return True

    def authenticate_client(self, request: Any) -> bool:
        """Find the client, which authenticates by exactly the method it registered for.

        At the revocation endpoint a correct secret may come by any method: Authlib always sends
        HTTP Basic there, and a refusal would leave the tokens alive. Raises OAuthError.
        """
        client_id, secret, method = _credentials(request)
        application = Application.objects.find(client_id)
        if application is None:
            raise invalid_client()
        is_carried = bool(
            request.uri == REVOCATION and secret and application.is_confidential
        )
        if not is_carried and application.token_endpoint_auth_method != method:
            raise invalid_client(
                f"This client registered for {application.token_endpoint_auth_method}."
            )
        if application.is_confidential and not check_password(
            secret, application.client_secret
        ):
            raise invalid_client()
        request.client, request.client_id = application, client_id
        return True

    # The code grant.

    def validate_code(
        self, client_id: str, code: str, client: Any, request: Any
    ) -> bool:
        codes = Grant.objects.filter(code=bearer.digest(code), application=client)
        grant = codes.select_related("user").first()
        if grant is not None and grant.token_family:
            # RFC 6749 section 4.1.2: one of the two uses may be an attacker's.
            grants.revoke_family(grant.token_family, user_id=grant.user_id)
        if grant is None or grant.token_family or grant.is_expired():
            raise InvalidGrantError(UNKNOWN, request=request)
        request.grant, request.user, request.scopes = grant, grant.user, [SCOPE]
        return True

    def get_code_challenge(self, code: str, request: Any) -> str:
        if request.code_verifier and not VERIFIER.fullmatch(request.code_verifier):
            raise InvalidGrantError("The code_verifier is malformed.", request=request)
        return str(request.grant.code_challenge)

    def get_code_challenge_method(self, code: str, request: Any) -> str:
        return str(request.grant.code_challenge_method)

    def confirm_redirect_uri(
        self, client_id: str, code: str, redirect_uri: str, client: Any, request: Any
    ) -> bool:
        if redirect_uri != request.grant.redirect_uri:
            raise InvalidGrantError(
                "The redirect_uri differs from that of the authorization.",
                request=request,
            )
        return True

    def invalidate_authorization_code(self, *_: Any, **__: Any) -> None:
        """Do nothing: save_bearer_token() has consumed it."""

    # The refresh grant.

    def validate_refresh_token(
        self, refresh_token: str, client: Any, request: Any
    ) -> bool:
        digest = bearer.digest(refresh_token)
        rows = RefreshToken.objects.filter(token_checksum=digest, application=client)
        token = rows.select_related("user").first()
        is_alive = token is not None and grants.is_alive(token, now=timezone.now())
        if token is not None and token.revoked and not is_alive:
            # RFC 9700 section 4.14.2: a retired token in use means that two parties have it.
            grants.revoke_family(token.token_family, user_id=token.user_id)
        if token is None or not is_alive:
            raise InvalidGrantError(UNKNOWN, request=request)
        request.refresh_token_instance, request.user = token, token.user
        return True

    def get_original_scopes(self, refresh_token: str, request: Any) -> list[str]:
        return [SCOPE]

    # Both grants.

    def save_bearer_token(self, token: dict[str, Any], request: Any) -> None:
        """Consume the code or refresh token and store the new pair.

        Raises InvalidGrantError when another request has consumed it since it was validated, or
        when the account or the application has gone.
        """
        try:
            with locked_account(request.user.pk) as user:
                family = _consumed(request) if user and user.is_active else None
                if family:
                    _store_pair(token, request, user=user, family=family)
        except IntegrityError as error:
            raise InvalidGrantError(UNKNOWN, request=request) from error
        if family is None:
            if _is_code(request):
                # Validated again, the code is a used one, and its tokens are revoked.
                self.validate_code(
                    request.client_id, request.code, request.client, request
                )
            raise InvalidGrantError(UNKNOWN, request=request)
        token["email"] = user.email

    def revoke_token(self, token: str, token_type_hint: str, request: Any) -> None:
        """End the connection of a token, of either kind; an unknown one is no error (RFC 7009)."""
        grants.end(token, request.client)


def _credentials(request: Any) -> tuple[str, str, AuthMethod]:
    """Return id, secret and method, of exactly one. Raises OAuthError."""
    secret = getattr(request, "client_secret", None) or ""
    if not (authorization := request.headers.get("Authorization", "")):
        if not request.client_id:
            raise OAuthError("Missing client_id parameter.")
        method = AuthMethod.POST if secret else AuthMethod.NONE
        return request.client_id, secret, method
    client_id, basic_secret = _basic(authorization)
    if secret:
        raise OAuthError("Authenticate in the header or in the body, not in both.")
    if request.client_id not in {None, "", client_id}:
        raise invalid_client("client_id differs from the header's.")
    return client_id, basic_secret, AuthMethod.BASIC


def _basic(authorization: str) -> tuple[str, str]:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        raise invalid_client("Only HTTP Basic authenticates clients.")
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
        name, secret = text.split(":", maxsplit=1)
    except ValueError as error:
        raise invalid_client("The Basic credentials are malformed.") from error
    # Both halves are form-encoded first (RFC 6749 section 2.3.1).
    return unquote_plus(name), unquote_plus(secret)


def _is_code(request: Any) -> bool:
    return bool(request.grant_type == "authorization_code")


def _consumed(request: Any) -> uuid.UUID | None:
    """Return the family of the new tokens; None when another request was quicker."""
    if _is_code(request):
        new = uuid.uuid4()
        return new if request.grant.consume(new) else None
    now = timezone.now()
    # Read again, now that the lock keeps others from changing it.
    token = RefreshToken.objects.filter(pk=request.refresh_token_instance.pk).first()
    if token is None or not grants.is_alive(token, now=now):
        return None
    family: uuid.UUID = token.token_family
    return family if grants.rotate(token, now=now) else None


def _store_pair(
    token: dict[str, Any], request: Any, *, user: Any, family: uuid.UUID
) -> None:
    fields = {"user": user, "application": request.client}
    expires = timezone.now() + timedelta(seconds=token["expires_in"])
    access = AccessToken(scope=token["scope"], expires=expires, **fields)
    set_token_value(access, token["access_token"])
    access.save()
    refresh = RefreshToken(access_token=access, token_family=family, **fields)
    set_token_value(refresh, token["refresh_token"])
    refresh.save()
