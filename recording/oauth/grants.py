"""A connection of one account: a family of access and refresh tokens that end together."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import IntegrityError
from django.db.models import Max, Q
from django.utils import timezone
from oauth2_provider.models import AccessToken, RefreshToken, clear_expired
from oauth2_provider.settings import oauth2_settings
from oauthlib.common import generate_token

from recording import token_memory
from recording.accounts.owners import locked_account
from recording.oauth.errors import OAuthError
from recording.oauth.metadata import SCOPE
from recording.oauth.models import REFRESH_LIFETIME, Application, Grant
from recording.oauth.parameters import Parameters
from webhooks_core.models import bearer

ACCESS_PREFIX = "rec_at_"
MAX_SIBLINGS = 4  # real clients refresh from a few processes at once, not from many


def _revoke(members: Q) -> int:
    token_memory.revoked()
    now = timezone.now()
    live = RefreshToken.objects.filter(members, revoked=None)
    revoked: int = live.update(revoked=now, updated=now)
    AccessToken.objects.filter(
        pk__in=RefreshToken.objects.filter(members).values("access_token_id")
    ).delete()
    return revoked


def revoke_family(family: UUID, *, user_id: int) -> None:
    """End one connection: every refresh and access token of it, however often it rotated."""
    with locked_account(user_id):
        _revoke(Q(token_family=family))


def end(token: str, application: Application) -> None:
    """End the connection that an access or refresh token of an application belongs to, if any."""
    digest = bearer.digest(token)
    tokens = RefreshToken.objects.filter(application=application)
    row = (
        tokens.filter(token_checksum=digest).first()
        or tokens.filter(access_token__token_checksum=digest).first()
    )
    if row is not None:
        revoke_family(row.token_family, user_id=row.user_id)


def disconnect(user: Any, application: Application | None = None) -> bool:
    """End an account's connections, with one application or with all; False if there was none.

    Codes that were not yet exchanged end too.
    """
    members = (
        Q(user=user) if application is None else Q(user=user, application=application)
    )
    with locked_account(user.pk):
        codes, _ = Grant.objects.filter(members, token_family=None).delete()
        tokens = _revoke(members)
    return bool(codes or tokens)


def new_code(application: Application, user: Any, parameters: Parameters) -> str:
    """Store a code that gives a connection. Raises OAuthError."""
    code: str = generate_token()
    lifetime = timedelta(seconds=oauth2_settings.AUTHORIZATION_CODE_EXPIRE_SECONDS)
    try:
        with locked_account(user.pk) as current:
            Grant.objects.create(
                application=application,
                user=current,
                code=bearer.digest(code),
                expires=timezone.now() + lifetime,
                redirect_uri=parameters.get("redirect_uri"),
                scope=SCOPE,
                code_challenge=parameters.get("code_challenge"),
                code_challenge_method=parameters.get("code_challenge_method"),
            )
    except IntegrityError as error:
        raise OAuthError("The account or application is gone.") from error
    return code


def authenticate(token: str) -> AbstractUser | None:
    """Return the user of a valid OAuth access token, or None; one query.

    Valid means: known, not expired, with the scope, and of a user who is still active. Each token
    is for this one resource (RFC 8707).
    """
    if not bearer.is_well_formed(token, ACCESS_PREFIX):
        return None
    live = AccessToken.objects.filter(expires__gt=timezone.now(), user__is_active=True)
    rows = live.select_related("user").filter(token_checksum=bearer.digest(token))
    row = rows.first()
    return row.user if row and SCOPE in row.scope.split() else None


def is_alive(token: RefreshToken, *, now: datetime) -> bool:
    """Return True if a refresh token may be used: it is current, or was rotated just now.

    Real clients refresh from several processes simultaneously, so a token that was rotated stays
    valid for a leeway, as long as its connection has not ended.
    """
    if now - token.created >= REFRESH_LIFETIME:
        return False
    if token.revoked is None:
        return True
    leeway = timedelta(seconds=settings.OAUTH_REFRESH_LEEWAY)
    current = RefreshToken.objects.filter(token_family=token.token_family, revoked=None)
    return bool(now - token.revoked < leeway and current.exists())


def rotate(token: RefreshToken, *, now: datetime) -> bool:
    """Mark a refresh token as rotated; False if it has MAX_SIBLINGS more pairs already.

    The leeway starts with the first use. The connection is not revoked at the end of the siblings:
    that is a fault of the client, not theft.
    """
    if token.revoked is None:
        RefreshToken.objects.filter(pk=token.pk).update(revoked=now, updated=now)
        return True
    family = RefreshToken.objects.filter(token_family=token.token_family)
    since = family.filter(created__gte=token.revoked).exclude(pk=token.pk)
    return bool(since.count() <= MAX_SIBLINGS)


def connected_applications(user: Any) -> Any:
    """Return the applications with live connections of an account, the latest used first.

    Each has `refreshed_at`.
    """
    live = Q(
        refreshtoken__user=user,
        refreshtoken__revoked=None,
        refreshtoken__created__gt=timezone.now() - REFRESH_LIFETIME,
    )
    applications = Application.objects.filter(live)
    return applications.annotate(refreshed_at=Max("refreshtoken__created")).order_by(
        "-refreshed_at"
    )


def prune() -> None:
    """Delete what has expired, and applications that nobody uses; called every hour.

    The toolkit keeps retired refresh tokens until they would have expired: their use reveals a
    theft.
    """
    clear_expired()
    Application.objects.unused(since=timezone.now() - REFRESH_LIFETIME).delete()
