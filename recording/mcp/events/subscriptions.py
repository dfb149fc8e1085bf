"""Subscriptions of MCP Events: how they begin, are refreshed and end."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import orjson
from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from recording.accounts.locks import (
    InactiveAccountError,
    active_account,
    locked_account,
)
from recording.accounts.owners import owner_id
from recording.mcp.events import clients
from recording.mcp.events.challenges import Challenge
from recording.mcp.events.clients import Client
from recording.mcp.events.errors import EventsError
from recording.models import EventSubscription
from recording.webhooks import EVENTS_PROFILE
from webhooks_core import endpoints, targets
from webhooks_core.models import Endpoint
from webhooks_core.network.url_policy import UrlRefusedError
from webhooks_core.signing.schemes import standard_key
from webhooks_core.times import iso

LEAST_TTL, DEFAULT_TTL = timedelta(minutes=5), timedelta(days=1)
# How long the secret before the present one signs beside it.
SECRET_GRACE = timedelta(minutes=10)
KEY_BYTES = range(24, 65)
MILLISECOND = timedelta(milliseconds=1)


def check_secret(secret: str) -> None:
    """Accept a secret of Standard Webhooks. Raises EventsError, without the secret."""
    try:
        is_valid = len(standard_key(secret)) in KEY_BYTES
    except ValueError:
        is_valid = False
    if not is_valid:
        raise EventsError(
            "InvalidParams",
            "delivery.secret must be whsec_ and the base64 of 24 to 64 random bytes",
        )


def check_url(url: str) -> None:
    """Accept a callback URL; this resolves its host. Raises EventsError."""
    try:
        targets.check_url(EVENTS_PROFILE, url)
    except UrlRefusedError as error:
        raise EventsError("InvalidParams", f"delivery.{error}") from error


@dataclass(frozen=True)
class Key:
    """All that identifies a subscription."""

    account: AbstractUser
    client: Client
    url: str
    name: str

    @cached_property
    def subscription_id(self) -> str:
        """Return the same id for the same key, also after the subscription has lapsed."""
        key = orjson.dumps([self.account.pk, self.client.id, self.url, self.name])
        return f"sub_{hashlib.sha256(key).hexdigest()[:32]}"

    def find(self) -> EventSubscription | None:
        """Return the subscription; its time may be over."""
        rows = EventSubscription.objects.filter(subscription_id=self.subscription_id)
        return rows.select_related("endpoint").first()

    def find_live(self) -> EventSubscription | None:
        row = self.find()
        return row if row and row.expires_at > timezone.now() else None

    def unsubscribe(self) -> None:
        """End the subscription. Raises EventsError."""
        with locked_account(self.account.pk):
            row = self.find_live()
            if row is None:
                raise EventsError(
                    "NotFound",
                    "there is no subscription of this client with this name and url",
                    kind="subscription",
                )
            end(row)


@dataclass(frozen=True)
class Subscribing:
    """A valid request to subscribe; a `ttl` of None asks for no end."""

    key: Key
    secret: str
    ttl: timedelta | None

    def challenge(self) -> Challenge | None:
        """Return what the receiver must be asked first; None if it has agreed before.

        Raises EventsError, before the receiver is asked in vain.
        """
        if self.key.find_live():
            return None
        own = Endpoint.objects.of(EVENTS_PROFILE, owner_id(self.key.account))
        if own.exclude(slot=None).count() >= settings.MCP_EVENTS_SUBSCRIPTIONS:
            raise _too_many()
        return Challenge(self.key.url, self.secret, self.key.subscription_id)

    def store(self) -> dict[str, Any]:
        """Create or refresh the subscription; return the result of `events/subscribe`."""
        try:
            with active_account(self.key.account):
                row = self._refreshed() or self._created()
        except InactiveAccountError as error:
            raise EventsError("Forbidden", "the account is not active") from error
        except endpoints.QuotaExceededError as error:
            raise _too_many() from error
        return {
            "resultType": "complete",
            "id": row.subscription_id,
            "refreshBefore": iso(row.expires_at),
            "cursor": None,
            "truncated": False,
        }

    def _created(self) -> EventSubscription:
        if lapsed := self.key.find():
            end(lapsed)
        created = endpoints.create(
            profile=EVENTS_PROFILE,
            owner=owner_id(self.key.account),
            url=self.key.url,
            event_types=[self.key.name],
            secret=self.secret,
            description=self.key.client.name,
        )
        return EventSubscription.objects.create(
            endpoint=created.endpoint,
            account_id=self.key.account.pk,
            client=self.key.client.id,
            subscription_id=self.key.subscription_id,
            name=self.key.name,
            expires_at=granted(self.ttl),
        )

    def _refreshed(self) -> EventSubscription | None:
        row = self.key.find_live()
        if row is not None:
            if row.endpoint.secrets(now=timezone.now())[:1] != [self.secret]:
                endpoints.rotate_secret(
                    row.endpoint, overlap=SECRET_GRACE, secret=self.secret
                )
            row.expires_at = granted(self.ttl)
            row.save(update_fields=["expires_at"])
        return row


def _too_many() -> EventsError:
    most = settings.MCP_EVENTS_SUBSCRIPTIONS
    return EventsError(
        "ResourceExhausted",
        f"an account has at most {most} subscriptions; end one by events/unsubscribe first",
        limit="subscriptions",
        max=most,
    )


def granted(ttl: timedelta | None) -> datetime:
    """Return until when a subscription lives: at least and at most for so long, never for ever."""
    most = timedelta(seconds=settings.MCP_EVENTS_MAX_TTL_S)
    return timezone.now() + (most if ttl is None else min(max(ttl, LEAST_TTL), most))


def end(row: EventSubscription) -> None:
    """End a subscription at once; what waits for it is not sent."""
    endpoints.delete(row.endpoint)
    row.delete()


def end_over() -> int:
    """End what time or a lost connection has ended; called every minute. Returns how many."""
    rows = EventSubscription.objects.all()
    pairs = set(rows.values_list("account", "client"))
    accounts = {account for account, _ in pairs - clients.connected(pairs)}
    over = rows.filter(expires_at__lte=timezone.now())
    accounts |= set(over.values_list("account", flat=True))
    return sum(_end_over(account) for account in sorted(accounts))


def _end_over(account: int) -> int:
    """End the subscriptions of an account that are over; a refresh holds the same lock."""
    with locked_account(account):
        rows = EventSubscription.objects.filter(account=account)
        pairs = {(row.account_id, row.client) for row in rows}
        connected, now = clients.connected(pairs), timezone.now()
        over = [
            row
            for row in rows.select_related("endpoint").order_by("pk")
            if row.expires_at <= now or (row.account_id, row.client) not in connected
        ]
        for row in over:
            end(row)
    return len(over)
