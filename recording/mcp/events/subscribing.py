"""`events/subscribe` and `events/unsubscribe`: a callback URL that gets signed events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db.models import Max
from django.utils import timezone

from recording.accounts.locks import InactiveAccountError, active_account
from recording.mcp.events import challenges, delivering, endings, occurrences
from recording.mcp.events.challenges import Challenge
from recording.mcp.events.clients import Client
from recording.mcp.events.conf import option
from recording.mcp.events.cursors import Position
from recording.mcp.events.errors import (
    ForbiddenError,
    InvalidParamsError,
    NotFoundError,
    ResourceExhaustedError,
)
from recording.mcp.events.occurrences import Subject
from recording.models import EventSubscription
from recording.subscriptions import owner_id
from recording.webhooks import EVENTS_PROFILE
from webhooks_core import endpoints
from webhooks_core.models import Attempt, Delivery, Endpoint
from webhooks_core.network.outcomes import Outcome
from webhooks_core.network.url_policy import UrlRefusedError
from webhooks_core.signing.schemes import standard_key
from webhooks_core.times import iso

LEAST_TTL = timedelta(minutes=5)
# How long the secret before the present one signs beside it.
SECRET_GRACE = timedelta(minutes=10)
KEY_BYTES = range(24, 65)
UNSET = object()


def check_secret(secret: str) -> None:
    """Accept a secret of Standard Webhooks. Raises InvalidParamsError, without the secret."""
    try:
        is_valid = len(standard_key(secret)) in KEY_BYTES
    except ValueError:
        is_valid = False
    if not is_valid:
        raise InvalidParamsError(
            "delivery.secret must be whsec_ and the base64 of 24 to 64 random bytes"
        )


def check_url(url: str) -> None:
    """Accept a callback URL; this resolves its host. Raises InvalidParamsError."""
    try:
        endpoints.check_url(EVENTS_PROFILE, url)
    except UrlRefusedError as error:
        raise InvalidParamsError(f"delivery.{error}") from error


@dataclass(frozen=True)
class Key:
    """All that identifies a subscription."""

    account: AbstractUser
    client: Client
    url: str
    subject: Subject

    @cached_property
    def subscription_id(self) -> str:
        parts = (str(self.account.pk), self.client.id, self.url, self.subject.name)
        return f"sub_{self.subject.arguments.digest(*parts)[:32]}"

    def current(self) -> EventSubscription | None:
        """Return the subscription that has not ended, its time may be over."""
        rows = EventSubscription.objects.filter(
            subscription_id=self.subscription_id, ended_at=None
        )
        return rows.select_related("endpoint").first()


@dataclass(frozen=True)
class Subscribing:
    """A request to subscribe that is valid; `ttl_ms` is UNSET if none was suggested."""

    key: Key
    secret: str
    ttl_ms: Any
    position: Position | None
    max_age_ms: int | None

    def challenge(self) -> Challenge | None:
        """Return what the receiver must be asked first; None if it has agreed before.

        It has for each client that has a live subscription at the URL.
        """
        if challenges.is_trusted(self.key.url):
            return None
        live = EventSubscription.objects.live(timezone.now()).filter(
            account=self.key.account.pk,
            client=self.key.client.id,
            endpoint__url=self.key.url,
        )
        if live.exists():
            return None
        self._check_quota()
        return Challenge(self.key.url, self.secret, self.key.subscription_id)

    def _check_quota(self) -> None:
        """Refuse before the receiver is asked in vain. Raises ResourceExhaustedError."""
        own = Endpoint.objects.of(EVENTS_PROFILE, owner_id(self.key.account))
        if own.exclude(slot=None).count() >= option("MCP_EVENTS_SUBSCRIPTIONS"):
            raise _too_many()

    def store(self) -> dict[str, Any]:
        """Create or refresh the subscription; return the result of `events/subscribe`."""
        try:
            # The lock is that of imports: none is published meanwhile.
            with active_account(self.key.account):
                now, current = timezone.now(), self.key.current()
                if current is not None and not current.is_live(now):
                    endings.end(current)
                    current = None
                if current is None:
                    return self._create(now)
                return self._refresh(current, now)
        except InactiveAccountError as error:
            raise ForbiddenError("the account is not active") from error
        except endpoints.QuotaExceededError as error:
            raise _too_many() from error

    def _create(self, now: datetime) -> dict[str, Any]:
        subject, position = self.key.subject, self.position
        created = endpoints.create(
            profile=EVENTS_PROFILE,
            owner=owner_id(self.key.account),
            url=self.key.url,
            event_types=[subject.name],
            secret=self.secret,
            description=f"{self.key.client.name}: {subject.arguments.canonical.decode()}"[
                :1000
            ],
        )
        row = EventSubscription.objects.create(
            endpoint=created.endpoint,
            account_id=subject.account,
            client=self.key.client.id,
            subscription_id=self.key.subscription_id,
            name=subject.name,
            arguments=dict(subject.arguments.sent),
            expires_at=granted(self.ttl_ms, now),
        )
        truncated = False
        if position is not None:
            floor = position.floor(now, self.max_age_ms)
            window = occurrences.read_after(subject, position.event, since=floor)
            newest = occurrences.read_newest(subject, position.event, since=floor)
            truncated = position.at < floor or window.has_more
            delivering.replay(row, newest if window.has_more else window.events)
        return self._result(row, now, truncated=truncated)

    def _refresh(self, row: EventSubscription, now: datetime) -> dict[str, Any]:
        endpoint = row.endpoint
        status = delivery_status(endpoint)
        if endpoint.secrets(now=now)[:1] != [self.secret]:
            endpoints.rotate_secret(endpoint, overlap=SECRET_GRACE, secret=self.secret)
        if not endpoint.is_receiving:
            endpoints.update(endpoint, status=Endpoint.Status.ACTIVE, paused_at=None)
        row.expires_at, row.refreshed_at = granted(self.ttl_ms, now), now
        row.save(update_fields=["expires_at", "refreshed_at"])
        return self._result(row, now) | {"deliveryStatus": status}

    def _result(
        self, row: EventSubscription, now: datetime, *, truncated: bool = False
    ) -> dict[str, Any]:
        subject = self.key.subject
        mark = delivering.watermarks([row.pk]).get(row.pk)
        position = (
            mark.position(subject.account)
            if mark
            else Position(subject.account, subject.newest(), now)
        )
        return {
            "resultType": "complete",
            "id": row.subscription_id,
            "refreshBefore": row.expires_at and iso(row.expires_at),
            "cursor": position.cursor(),
            "truncated": truncated,
        }


def _too_many() -> ResourceExhaustedError:
    most = option("MCP_EVENTS_SUBSCRIPTIONS")
    return ResourceExhaustedError(
        f"an account has at most {most} subscriptions; end one by events/unsubscribe first",
        limit="subscriptions",
        max=most,
    )


def granted(ttl_ms: Any, now: datetime) -> datetime | None:
    """Return until when a subscription lives; None for no end."""
    if ttl_ms is None and option("MCP_EVENTS_NO_EXPIRY"):
        return None
    most = timedelta(seconds=option("MCP_EVENTS_MAX_TTL_S"))
    if ttl_ms is None:
        return now + most
    if ttl_ms is UNSET:
        return now + min(timedelta(seconds=option("MCP_EVENTS_TTL_S")), most)
    millisecond = timedelta(milliseconds=1)
    suggested: float = max(min(ttl_ms, most / millisecond), LEAST_TTL / millisecond)
    return now + suggested * millisecond


def unsubscribe(key: Key) -> dict[str, Any]:
    """Return the result of `events/unsubscribe`. Raises NotFoundError."""
    row = key.current()
    if row is None or not row.is_live(timezone.now()):
        raise NotFoundError(
            "there is no subscription of this client with these name, arguments and url",
            kind="subscription",
        )
    endings.end(row)
    return {"resultType": "complete"}


def delivery_status(endpoint: Endpoint) -> dict[str, Any]:
    """Return how deliveries went, without a word of the receiver."""
    rows = Delivery.objects.filter(endpoint=endpoint)
    delivered = rows.filter(status=Delivery.Status.DELIVERED)
    last_at = delivered.aggregate(last_at=Max("delivered_at"))["last_at"]
    status: dict[str, Any] = {
        "active": endpoint.is_receiving,
        "lastDeliveryAt": last_at and iso(last_at),
        "lastError": None,
    }
    if endpoint.consecutive_failures:
        failed = Attempt.objects.filter(delivery__endpoint=endpoint).exclude(
            outcome=Outcome.OK
        )
        if last_at:
            failed = failed.filter(started_at__gt=last_at)
        failed = failed.order_by("started_at")
        if (first := failed.first()) and (newest := failed.last()):
            status["lastError"] = challenges.category(
                newest.outcome, newest.status_code
            )
            status["failedSince"] = iso(first.started_at)
    return status
