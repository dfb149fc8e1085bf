"""What the OAuth server asks the database: codes and tokens, hashed, consumed exactly once."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Any

from django.utils import timezone
from oauth2_provider.models import AccessToken, RefreshToken, set_token_value
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.settings import oauth2_settings
from oauthlib.oauth2.rfc6749 import errors

from recording.oauth import clients, connections
from recording.oauth.models import Grant
from webhooks_core.api import tokens

ACCESS_PREFIX = "rec_at_"
REFRESH_PREFIX = "rec_rt_"
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)


def make_access_token(request: Any) -> str:
    """Return a new access token; its prefix lets scanners find it in leaks."""
    return tokens.make(ACCESS_PREFIX)


def make_refresh_token(request: Any) -> str:
    """Return a new refresh token."""
    return tokens.make(REFRESH_PREFIX)


def _is_code(request: Any) -> bool:
    return bool(request.grant_type == "authorization_code")


def _audience(request: Any) -> list[str]:
    """Return the resources of the new token: those asked for now, or else those granted.

    Raises CustomOAuth2Error `invalid_target` when more is asked for than was granted.
    """
    source = request.grant if _is_code(request) else request.refresh_token_instance
    granted, asked = source.resource, list(request.resource or ())
    if granted and not set(asked) <= set(granted):
        raise errors.CustomOAuth2Error(
            "invalid_target",
            description="The resource was not part of the authorization.",
            request=request,
        )
    return asked or granted


class Validator(OAuth2Validator):
    """The toolkit's validator with strict clients, hashed codes and races that one side wins."""

    # The endpoint has authenticated the client before this server runs.

    def client_authentication_required(
        self, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        return False

    def authenticate_client_id(
        self, client_id: str, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        return request.client is not None

    # The authorization endpoint.

    def save_authorization_code(
        self,
        client_id: str,
        code: dict[str, str],
        request: Any,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        lifetime = timedelta(seconds=oauth2_settings.AUTHORIZATION_CODE_EXPIRE_SECONDS)
        Grant.objects.create(
            application=request.client,
            user=request.user,
            code=tokens.digest(code["code"]),
            expires=timezone.now() + lifetime,
            redirect_uri=request.redirect_uri,
            scope=" ".join(request.scopes),
            code_challenge=request.code_challenge,
            code_challenge_method=request.code_challenge_method,
            resource=list(request.resource or ()),
        )

    # The code grant.

    def validate_code(
        self,
        client_id: str,
        code: str,
        client: Any,
        request: Any,
        *args: Any,
        **kw: Any,
    ) -> bool:
        grant = (
            Grant.objects.filter(code=tokens.digest(code), application=client)
            .select_related("user")
            .first()
        )
        if grant is None:
            return False
        if grant.token_family:
            # RFC 6749 section 4.1.2: whoever comes second may be the thief, or the victim.
            connections.revoke_family(grant.token_family, user_id=grant.user_id)
            return False
        request.grant, request.user = grant, grant.user
        request.scopes = grant.scope.split()
        return not grant.is_expired()

    def get_code_challenge(self, code: str, request: Any) -> str:
        if request.code_verifier and not VERIFIER.fullmatch(request.code_verifier):
            raise errors.InvalidGrantError(request=request)
        return str(request.grant.code_challenge)

    def get_code_challenge_method(self, code: str, request: Any) -> str:
        return str(request.grant.code_challenge_method)

    def confirm_redirect_uri(
        self,
        client_id: str,
        code: str,
        redirect_uri: str,
        client: Any,
        *args: Any,
        **kw: Any,
    ) -> bool:
        (request,) = args
        if redirect_uri != request.grant.redirect_uri:
            raise errors.InvalidGrantError(
                "The redirect_uri differs from that of the authorization.",
                request=request,
            )
        return True

    def invalidate_authorization_code(
        self, client_id: str, code: str, request: Any, *args: Any, **kwargs: Any
    ) -> None:
        """Do nothing: minting has consumed it in its own transaction."""

    # The refresh grant.

    def validate_refresh_token(
        self, refresh_token: str, client: Any, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        found = RefreshToken.objects.filter(
            token_checksum=tokens.digest(refresh_token), application=client
        ).select_related("user")
        token = found.first()
        if token is None:
            return False
        request.refresh_token_instance, request.user = token, token.user
        if connections.is_alive(token, now=timezone.now()):
            return True
        if token.revoked:
            # RFC 9700 section 4.14.2: a retired token in use means that two parties have it.
            connections.revoke_family(token.token_family, user_id=token.user_id)
        return False

    def get_original_scopes(
        self, refresh_token: str, request: Any, *args: Any, **kwargs: Any
    ) -> list[str]:
        return [clients.SCOPE]

    # Minting.

    def save_bearer_token(
        self, token: dict[str, Any], request: Any, *args: Any, **kwargs: Any
    ) -> None:
        """Consume the code or refresh token and store the new pair, or raise InvalidGrantError.

        Whoever validated the same code or token meanwhile finds it consumed here.
        """
        request.resource = _audience(request)
        with connections.locked_account(request.user.pk) as user:
            consume = self._consume_code if _is_code(request) else self._consume_refresh
            family = consume(request) if user and user.is_active else None
            if family:
                self._mint(token, request, user=user, family=family)
                request.client.note_use()
        if family is None:
            if _is_code(request):
                # Ask again: this time the code is seen as used, and its tokens are revoked.
                self.validate_code(
                    request.client_id, request.code, request.client, request
                )
            raise errors.InvalidGrantError(request=request)
        token["email"] = user.email

    def _consume_code(self, request: Any) -> uuid.UUID | None:
        family = uuid.uuid4()
        won = Grant.objects.filter(pk=request.grant.pk, token_family=None).update(
            token_family=family
        )
        return family if won else None

    def _consume_refresh(self, request: Any) -> uuid.UUID | None:
        now = timezone.now()
        # Read it again, now that nobody else can change it.
        token = RefreshToken.objects.filter(
            pk=request.refresh_token_instance.pk
        ).first()
        if token is None or not connections.is_alive(token, now=now):
            return None
        if not connections.rotate(token, now=now):
            return None
        family: uuid.UUID = token.token_family
        return family

    def _mint(
        self, token: dict[str, Any], request: Any, *, user: Any, family: uuid.UUID
    ) -> None:
        shared = {
            "user": user,
            "application": request.client,
            "resource": request.resource,
        }
        lifetime = timedelta(seconds=token["expires_in"])
        access = AccessToken(
            scope=token["scope"], expires=timezone.now() + lifetime, **shared
        )
        set_token_value(access, token["access_token"])
        access.save()
        refresh = RefreshToken(access_token=access, token_family=family, **shared)
        set_token_value(refresh, token["refresh_token"])
        refresh.save()
