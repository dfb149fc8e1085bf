"""The clients of an account: the connected applications and the personal tokens that act for it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from django.contrib.auth import get_user_model
from django.utils import timezone
from oauth2_provider.models import AccessToken, RefreshToken
from rest_framework.request import Request

from recording.authentication import bearer_token
from recording.mcp.events.errors import ForbiddenError
from recording.models import PersonalToken
from recording.oauth.models import REFRESH_LIFETIME, Application
from webhooks_core.models import bearer

APPLICATION, TOKEN = "application", "token"


class Client(NamedTuple):
    """A client, what people call it, and until when the token of this request is valid."""

    id: str
    name: str
    expires_at: datetime
    token: tuple[str, int]  # its kind and row


def of(request: Request) -> Client:
    """Return the client of a request. Raises ForbiddenError if its token has ended meanwhile."""
    digest = bearer.digest(bearer_token(request))
    access = (
        AccessToken.objects.filter(token_checksum=digest)
        .select_related("application")
        .only("id", "expires", "application__name")
        .first()
    )
    if access is not None:
        application = access.application
        return Client(
            f"{APPLICATION}:{application.pk}",
            application.name,
            access.expires,
            (APPLICATION, access.pk),
        )
    token = PersonalToken.objects.filter(digest=digest).first()
    if token is None:
        raise ForbiddenError("the access token is not valid any more")
    name = token.name or token.display_prefix
    return Client(f"{TOKEN}:{token.pk}", name, token.expires_at, (TOKEN, token.pk))


def live_tokens(tokens: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
    """Return those of these tokens that are still valid, and whose account is active."""
    by_kind = {
        kind: [pk for each, pk in tokens if each == kind]
        for kind in (APPLICATION, TOKEN)
    }
    now = timezone.now()
    access = AccessToken.objects.filter(
        pk__in=by_kind[APPLICATION], expires__gt=now, user__is_active=True
    )
    personal = PersonalToken.objects.filter(
        pk__in=by_kind[TOKEN], expires_at__gt=now, revoked_at=None, user__is_active=True
    )
    return {(APPLICATION, pk) for pk in access.values_list("pk", flat=True)} | {
        (TOKEN, pk) for pk in personal.values_list("pk", flat=True)
    }


Connection = tuple[int, str]  # the account, and the id of a client


def connected(pairs: Collection[Connection]) -> set[Connection]:
    """Return those accounts and clients that are still connected, and whose account is active."""
    active = get_user_model().objects.filter(
        pk__in={account for account, _ in pairs}, is_active=True
    )
    accounts = set(active.values_list("pk", flat=True))
    pairs = [pair for pair in pairs if pair[0] in accounts]
    return _applications(pairs) | _tokens(pairs)


def _applications(pairs: Collection[Connection]) -> set[Connection]:
    rows = RefreshToken.objects.filter(
        user__in={account for account, _ in pairs},
        application__in=_ids(pairs, APPLICATION),
        revoked=None,
        created__gt=timezone.now() - REFRESH_LIFETIME,
    )
    found = rows.values_list("user", "application").distinct()
    return {(user, f"{APPLICATION}:{pk}") for user, pk in found} & set(pairs)


def _tokens(pairs: Collection[Connection]) -> set[Connection]:
    now = timezone.now()
    rows = PersonalToken.objects.filter(pk__in=_ids(pairs, TOKEN))
    found = {
        (row.user_id, f"{TOKEN}:{row.pk}") for row in rows if row.state(now) == "live"
    }
    return found & set(pairs)


def _ids(pairs: Collection[Connection], kind: str) -> set[int]:
    parts = [client.split(":") for _, client in pairs]
    return {int(pk) for each, pk in parts if each == kind}


def names(ids: Collection[str]) -> dict[str, str]:
    """Return what people call these clients; one that is gone is left out."""
    pairs = [(0, client) for client in ids]
    applications = Application.objects.filter(pk__in=_ids(pairs, APPLICATION))
    tokens = PersonalToken.objects.filter(pk__in=_ids(pairs, TOKEN))
    return {
        f"{APPLICATION}:{pk}": name
        for pk, name in applications.values_list("pk", "name")
    } | {f"{TOKEN}:{row.pk}": row.name or row.display_prefix for row in tokens}
