"""A connection of one account: a family of access and refresh tokens that end together."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Max, Min, OuterRef, Q, Subquery
from django.utils import timezone
from oauth2_provider.models import AccessToken, RefreshToken, clear_expired

from recording import token_memory
from recording.accounts.locks import locked_account
from recording.oauth.models import REFRESH_LIFETIME, Application, Grant, Rotation
from webhooks_core.models import bearer

MAX_SIBLINGS = (
    4  # real clients refresh from a few processes simultaneously, not from many
)


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
    """Mark a refresh token as rotated; if it is rotated already, count one more token pair.

    The leeway starts with the first use. Returns False if the token has MAX_SIBLINGS more pairs
    already. The connection is not revoked then: this is a fault of the client, not theft.
    """
    if token.revoked is None:
        RefreshToken.objects.filter(pk=token.pk).update(revoked=now, updated=now)
        return True
    rotation, _ = Rotation.objects.get_or_create(retired=token.pk)
    return rotation.add_sibling(at_most=MAX_SIBLINGS)


def connected_applications(user: Any) -> Any:
    """Return the applications with live connections of an account, the latest used first.

    Each has `connections` (how many), `connected_at` and `refreshed_at`.
    """
    families = RefreshToken.objects.filter(user=user, revoked=None)
    first = (
        RefreshToken.objects.filter(
            user=user,
            application=OuterRef("pk"),
            token_family__in=families.values("token_family"),
        )
        .order_by()
        .values("application")
        .annotate(at=Min("created"))
    )
    live = Q(
        refreshtoken__user=user,
        refreshtoken__revoked=None,
        refreshtoken__created__gt=timezone.now() - REFRESH_LIFETIME,
    )
    return (
        Application.objects.filter(live)
        .annotate(
            connections=Count("refreshtoken__token_family", distinct=True),
            connected_at=Subquery(first.values("at")),
            refreshed_at=Max("refreshtoken__created"),
        )
        .order_by("-refreshed_at")
    )


def prune() -> None:
    """Delete what has expired, and applications that nobody uses; called every hour.

    The toolkit keeps retired refresh tokens until they would have expired: their use reveals a
    theft.
    """
    clear_expired()
    now = timezone.now()
    leeway = timedelta(seconds=settings.OAUTH_REFRESH_LEEWAY)
    Rotation.objects.filter(created__lt=now - leeway).delete()
    unused = timedelta(days=settings.OAUTH_UNUSED_CLIENT_DAYS)
    Application.objects.idle(since=now - unused).delete()
