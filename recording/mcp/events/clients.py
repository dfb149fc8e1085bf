"""The clients of an account: the connected applications and the personal tokens that act for it."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from django.contrib.auth import get_user_model
from django.utils import timezone
from oauth2_provider.models import AccessToken, RefreshToken

from recording.mcp.events.errors import EventsError
from recording.models import PersonalToken
from recording.oauth.models import REFRESH_LIFETIME
from webhooks_core.models import bearer

APPLICATION, TOKEN = "application", "token"
Connection = tuple[int, str]  # the account, and the id of a client


class Client(NamedTuple):
    """A client, and what people call it."""

    id: str
    name: str


def of(token: str) -> Client:
    """Return the client of a bearer token. Raises EventsError if it has ended meanwhile."""
    digest = bearer.digest(token)
    access = AccessToken.objects.filter(token_checksum=digest)
    if found := access.values_list("application", "application__name").first():
        return Client(f"{APPLICATION}:{found[0]}", found[1])
    personal = PersonalToken.objects.filter(digest=digest).first()
    if personal is None:
        raise EventsError("Forbidden", "the access token is not valid any more")
    return Client(f"{TOKEN}:{personal.pk}", personal.name or personal.display_prefix)


def connected(pairs: Collection[Connection]) -> set[Connection]:
    """Return those accounts and clients that are still connected, and whose account is active."""
    active = get_user_model().objects.filter(
        pk__in={account for account, _ in pairs}, is_active=True
    )
    accounts = set(active.values_list("pk", flat=True))
    applications = RefreshToken.objects.filter(
        user__in=accounts,
        application__in=_ids(pairs, APPLICATION),
        revoked=None,
        created__gt=timezone.now() - REFRESH_LIFETIME,
    ).values_list("user", "application")
    tokens = PersonalToken.objects.filter(
        user__in=accounts,
        pk__in=_ids(pairs, TOKEN),
        revoked_at=None,
        expires_at__gt=timezone.now(),
    ).values_list("user", "pk")
    live = {(user, f"{APPLICATION}:{pk}") for user, pk in applications.distinct()}
    return set(pairs) & (live | {(user, f"{TOKEN}:{pk}") for user, pk in tokens})


def _ids(pairs: Collection[Connection], kind: str) -> set[int]:
    parts = [client.split(":") for _, client in pairs]
    return {int(pk) for each, pk in parts if each == kind}
