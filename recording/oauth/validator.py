"""How the OAuth server reads and stores codes and tokens: as hashes, consumed exactly once."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Any

import structlog
from django.utils import timezone
from oauth2_provider.models import AccessToken, RefreshToken, set_token_value
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.settings import oauth2_settings
from oauthlib.oauth2 import InvalidGrantError

from recording.accounts.locks import locked_account
from recording.oauth import clients, grants, resources
from recording.oauth.errors import InvalidRequestError, InvalidTargetError
from recording.oauth.models import Grant
from webhooks_core.models import bearer

log = structlog.stdlib.get_logger("signpost.oauth")

ACCESS_PREFIX = "rec_at_"
REFRESH_PREFIX = "rec_rt_"
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)


def make_access_token(request: Any) -> str:
    """Return a new access token; its prefix lets scanners find it in leaks."""
    return bearer.make(ACCESS_PREFIX)


def make_refresh_token(request: Any) -> str:
    """Return a new refresh token."""
    return bearer.make(REFRESH_PREFIX)


class Validator(OAuth2Validator):
    """The toolkit's validator with hashed codes, of which one request alone consumes each."""

    # The token endpoint has authenticated the client before this server runs.

    def client_authentication_required(self, request: Any) -> bool:
        return False

    def authenticate_client_id(self, client_id: str, request: Any) -> bool:
        return request.client is not None

    # The authorization endpoint.

    def save_authorization_code(
        self, client_id: str, code: dict[str, str], request: Any
    ) -> None:
        lifetime = timedelta(seconds=oauth2_settings.AUTHORIZATION_CODE_EXPIRE_SECONDS)
        with locked_account(request.user.pk) as user:
            if user is None or not request.client.is_kept():
                raise InvalidRequestError("The account or the application is gone.")
            Grant.objects.create(
                application=request.client,
                user=user,
                code=bearer.digest(code["code"]),
                expires=timezone.now() + lifetime,
                redirect_uri=request.redirect_uri,
                scope=" ".join(request.scopes),
                code_challenge=request.code_challenge,
                code_challenge_method=request.code_challenge_method,
                resource=list(request.resource),
            )

    # The code grant.

    def validate_code(
        self, client_id: str, code: str, client: Any, request: Any
    ) -> bool:
        codes = Grant.objects.filter(code=bearer.digest(code), application=client)
        grant = codes.select_related("user").first()
        if grant is None:
            return False
        if grant.token_family:
            # RFC 6749 section 4.1.2: one of the two uses may be an attacker's.
            grants.revoke_family(grant.token_family, user_id=grant.user_id)
            log.warning("a used code came again", account=grant.user_id)
            return False
        request.grant, request.user = grant, grant.user
        request.scopes = grant.scope.split()
        return not grant.is_expired()

    def get_code_challenge(self, code: str, request: Any) -> str:
        if request.code_verifier and not VERIFIER.fullmatch(request.code_verifier):
            raise InvalidGrantError(request=request)
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

    # The refresh grant.

    def validate_refresh_token(
        self, refresh_token: str, client: Any, request: Any
    ) -> bool:
        digest = bearer.digest(refresh_token)
        rows = RefreshToken.objects.filter(token_checksum=digest, application=client)
        token = rows.select_related("user").first()
        if token is None:
            return False
        request.refresh_token_instance, request.user = token, token.user
        if grants.is_alive(token, now=timezone.now()):
            return True
        if token.revoked:
            # RFC 9700 section 4.14.2: a retired token in use means that two parties have it.
            grants.end(token)
            log.warning("a retired refresh token came again", account=token.user_id)
        return False

    def get_original_scopes(self, refresh_token: str, request: Any) -> list[str]:
        return [clients.SCOPE]

    # Both grants.

    def save_bearer_token(self, token: dict[str, Any], request: Any) -> None:
        """Consume the code or refresh token and store the new pair.

        Raises InvalidGrantError when another request has consumed it since it was validated.
        """
        request.resource = _resources(request)
        consume = _consume_code if _is_code(request) else _consume_refresh_token
        with locked_account(request.user.pk) as user:
            is_open = user and user.is_active and request.client.is_kept()
            family = consume(request) if is_open else None
            if family:
                _store_pair(token, request, user=user, family=family)
                request.client.note_use()
        if family is None:
            if _is_code(request):
                # Validated again, the code is a used one, and its tokens are revoked.
                self.validate_code(
                    request.client_id, request.code, request.client, request
                )
            raise InvalidGrantError(request=request)
        token["email"] = user.email


def _is_code(request: Any) -> bool:
    return bool(request.grant_type == "authorization_code")


def _granted(request: Any) -> list[str]:
    """Return the resources of the code or refresh token; an empty list for any."""
    source = request.grant if _is_code(request) else request.refresh_token_instance
    granted: list[str] = source.resource
    return granted


def _resources(request: Any) -> list[str]:
    """Return the resources of the access token: the requested ones, or else the granted ones.

    Raises InvalidTargetError when a requested one was not granted.
    """
    granted, requested = _granted(request), request.resource
    named = {resources.canonical(each) for each in requested}
    if granted and not named <= {resources.canonical(each) for each in granted}:
        raise InvalidTargetError("The resource was not part of the authorization.")
    return list(requested or granted)


def _consume_code(request: Any) -> uuid.UUID | None:
    """Return the family of the new tokens; None when the code was used meanwhile."""
    family = uuid.uuid4()
    unused = Grant.objects.filter(pk=request.grant.pk, token_family=None)
    return family if unused.update(token_family=family) else None


def _consume_refresh_token(request: Any) -> uuid.UUID | None:
    """Return the family of the refresh token; None when it is no longer alive."""
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
    access = AccessToken(
        scope=token["scope"], expires=expires, resource=request.resource, **fields
    )
    set_token_value(access, token["access_token"])
    access.save()
    # An access token for a part leaves the whole grant to the next one (RFC 8707 section 2.2).
    resource = _granted(request) or request.resource
    refresh = RefreshToken(
        access_token=access, token_family=family, resource=resource, **fields
    )
    set_token_value(refresh, token["refresh_token"])
    refresh.save()
