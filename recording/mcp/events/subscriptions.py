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

from recording.accounts.owners import (
    InactiveAccountError,
    active_account,
    locked_account,
    owner_id,
)
from recording.mcp.events import clients
from recording.mcp.events.clients import Client
from recording.mcp.events.errors import EventsError
from recording.models import EventSubscription
from recording.webhooks import EVENTS_PROFILE, SUMMARY_COMPLETED
from webhooks_core import endpoints
from webhooks_core.models import Endpoint
from webhooks_core.network.url_policy import UrlRefusedError
from webhooks_core.signing.schemes import standard_key
from webhooks_core.times import iso

LEAST_TTL_MS = 300_000
# How long the secret before the present one signs beside it.
SECRET_GRACE = timedelta(minutes=10)
KEY_BYTES = range(24, 65)


def check_delivery(url: str, secret: str) -> None:
    """Accept a callback; this resolves its host. Raises EventsError, without the secret."""
    try:
        is_valid = len(standard_key(secret)) in KEY_BYTES
    except ValueError:
        is_valid = False
    if not is_valid:
        raise EventsError(
            "InvalidParams",
            "delivery.secret must be whsec_ and the base64 of 24 to 64 random bytes",
        )
    try:
        endpoints.check_url(EVENTS_PROFILE, url)
    except UrlRefusedError as error:
        raise EventsError("InvalidParams", f"delivery.{error}") from error


@dataclass(frozen=True)
class Key:
    """All that identifies a subscription."""

    account: AbstractUser
    client: Client
    url: str

    @cached_property
    def subscription_id(self) -> str:
        """Return the same id for the same key, also after the subscription has lapsed."""
        parts = [self.account.pk, self.client.id, self.url, SUMMARY_COMPLETED]
        return f"sub_{hashlib.sha256(orjson.dumps(parts)).hexdigest()[:32]}"

    def find(self) -> EventSubscription | None:
        """Return the subscription; one whose time is over ends."""
        rows = EventSubscription.objects.select_related("endpoint")
        row = rows.filter(subscription_id=self.subscription_id).first()
        if row and row.expires_at <= timezone.now():
            end(row)
            return None
        return row

    def is_new(self) -> bool:
        """Return True if the receiver must agree first. Raises EventsError if it would in vain."""
        if self.find():
            return False
        own = Endpoint.objects.of(EVENTS_PROFILE, owner_id(self.account))
        if own.exclude(slot=None).count() >= settings.MCP_EVENTS_SUBSCRIPTIONS:
            raise _too_many()
        return True

    def subscribe(self, secret: str, ttl_ms: int | None) -> dict[str, Any]:
        """Create or refresh the subscription; return the result of `events/subscribe`."""
        try:
            with active_account(self.account):
                row = self._refreshed(secret) or self._created(secret)
                row.expires_at = _end_of(ttl_ms)
                row.save()
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

    def _refreshed(self, secret: str) -> EventSubscription | None:
        row = self.find()
        if row and row.endpoint.secrets(now=timezone.now())[:1] != [secret]:
            endpoints.rotate_secret(row.endpoint, overlap=SECRET_GRACE, secret=secret)
        return row

    def _created(self, secret: str) -> EventSubscription:
        created = endpoints.create(
            profile=EVENTS_PROFILE,
            owner=owner_id(self.account),
            url=self.url,
            event_types=[SUMMARY_COMPLETED],
            secret=secret,
            description=self.client.name,
        )
        return EventSubscription(
            endpoint=created.endpoint,
            account_id=self.account.pk,
            client=self.client.id,
            subscription_id=self.subscription_id,
        )

    def unsubscribe(self) -> None:
        """End the subscription. Raises EventsError."""
        with locked_account(self.account.pk):
            if (row := self.find()) is None:
                raise EventsError(
                    "NotFound",
                    "there is no subscription of this client with this name and url",
                    kind="subscription",
                )
            end(row)


def _too_many() -> EventsError:
    most = settings.MCP_EVENTS_SUBSCRIPTIONS
    text = f"an account has at most {most} subscriptions; end one by events/unsubscribe first"
    return EventsError("ResourceExhausted", text, limit="subscriptions", max=most)


def _end_of(ttl_ms: int | None) -> datetime:
    """Return until when a subscription lives: at least and at most for so long, never for ever."""
    most = settings.MCP_EVENTS_MAX_TTL_S * 1000
    lifetime = most if ttl_ms is None else min(max(ttl_ms, LEAST_TTL_MS), most)
    return timezone.now() + timedelta(milliseconds=lifetime)


def end(row: EventSubscription) -> None:
    """End a subscription at once; what waits for it is not sent."""
    endpoints.delete(row.endpoint)
    row.delete()


def end_over() -> None:
    """End what time or a lost connection has ended; called every minute."""
    for account in sorted({row.account_id for row in _over()}):
        with locked_account(account):  # a refresh holds the same lock
            for row in _over(account=account):
                end(row)


def _over(**which: int) -> list[EventSubscription]:
    rows = EventSubscription.objects.filter(**which).select_related("endpoint")
    found, now = list(rows.order_by("pk")), timezone.now()
    connected = clients.connected({row.connection for row in found})
    return [
        row for row in found if row.expires_at <= now or row.connection not in connected
    ]
