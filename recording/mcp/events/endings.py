"""How subscriptions end: by their client, in time, with their client, or after long failure."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson
import structlog
from django.db import transaction
from django.db.models import Count, F, Q
from django.utils import timezone

from recording.accounts.locks import locked_account
from recording.mcp.events import clients, delivering
from recording.mcp.events.errors import EventsError, ForbiddenError
from recording.models import EventSubscription
from recording.models.events import EventSubscriptionQuerySet
from recording.webhooks import EVENTS_PROFILE
from webhooks_core import endpoints, publishing
from webhooks_core.models import Attempt, Delivery, Endpoint, Event
from webhooks_core.network.outcomes import Outcome

# Suspension: of at least so many attempts within an hour, more than this part failed.
WINDOW, LEAST_ATTEMPTS, MOST_FAILED = timedelta(hours=1), 20, 0.95
# A subscription without an expiry that has been suspended for so long ends.
DROPPED_AFTER = timedelta(days=7)
BATCH = 500

log = structlog.stdlib.get_logger(__name__)


def end(subscription: EventSubscription) -> None:
    """End a subscription at once; what waits for it is not sent."""
    EventSubscription.objects.filter(pk=subscription.pk).end(timezone.now())
    endpoints.delete(subscription.endpoint)


def terminate(subscription: EventSubscription, error: EventsError) -> bool:
    """End a subscription and tell its receiver why; its endpoint goes when that is sent.

    Returns False if it had ended already.
    """
    body = {"type": "terminated", "error": error.as_dict(is_draft=False)}
    with transaction.atomic():
        rows = EventSubscription.objects.filter(pk=subscription.pk)
        if not rows.end(timezone.now()):
            return False
        pending = Delivery.objects.waiting().filter(endpoint=subscription.endpoint_id)
        pending.fail(error=delivering.ENDED)
        endpoint = Endpoint.objects.get(pk=subscription.endpoint_id)
        endpoints.update(endpoint, status=Endpoint.Status.ACTIVE, paused_at=None)
        publishing.deliver(_control_event(endpoint, body), [endpoint.pk])
    return True


def _control_event(endpoint: Endpoint, body: Mapping[str, Any]) -> Event:
    content = orjson.dumps(body)
    return Event.objects.create(
        public_id=f"msg_terminated_{secrets.token_hex(12)}",
        profile=endpoint.profile,
        owner=endpoint.owner,
        type=delivering.TERMINATED,
        body=content,
        size=len(content),
    )


def run() -> dict[str, int]:
    """Do what time brings; called every minute. Returns how many of each kind."""
    now = timezone.now()
    return {
        "expired": _expire(now),
        "disconnected": _end_disconnected(now),
        "suspended": _suspend(now),
        "dropped": _drop(now),
        "removed": _remove_ended(),
    }


def _expire(now: datetime) -> int:
    over = EventSubscription.objects.filter(ended_at=None, expires_at__lte=now)
    rows = list(over.select_related("endpoint").order_by("pk")[:BATCH])
    return sum(_end_over(row, now) for row in rows)


def _end_over(row: EventSubscription, now: datetime) -> bool:
    """End a subscription whose time is over; False if its client has just refreshed it.

    A refresh holds the same lock.
    """
    with locked_account(row.account_id):
        over = EventSubscription.objects.filter(pk=row.pk, expires_at__lte=now)
        if not over.end(now):
            return False
    endpoints.delete(row.endpoint)
    return True


def _end_disconnected(now: datetime) -> int:
    """End the subscriptions of clients without access."""
    live = EventSubscription.objects.live(now)
    pairs = set(live.values_list("account", "client").distinct())
    gone = pairs - clients.connected(pairs)
    rows = [
        row
        for account, client in sorted(gone)
        for row in live.filter(account=account, client=client).order_by("pk")
    ]
    return sum(_end_gone(row) for row in rows)


def _end_gone(row: EventSubscription) -> bool:
    """End the subscription of a client without access; False if it has just connected again."""
    error = ForbiddenError("access was revoked", reason="Access revoked")
    with locked_account(row.account_id):
        is_connected = clients.connected({(row.account_id, row.client)})
        return not is_connected and terminate(row, error)


def _suspend(now: datetime) -> int:
    """Pause the endpoints of which nearly all attempts failed; a refresh resumes them."""
    failing = Endpoint.objects.receiving().filter(
        profile=EVENTS_PROFILE, consecutive_failures__gt=0
    )
    recent = Attempt.objects.filter(
        started_at__gt=now - WINDOW, delivery__endpoint__in=failing
    )
    counts = recent.values("delivery__endpoint").annotate(
        all=Count("pk"), failed=Count("pk", filter=~Q(outcome=Outcome.OK))
    )
    hopeless = counts.filter(all__gte=LEAST_ATTEMPTS, failed__gt=MOST_FAILED * F("all"))
    rows = list(failing.filter(pk__in=hopeless.values("delivery__endpoint")))
    for endpoint in rows:
        endpoints.pause(endpoint)
        log.warning("event subscription suspended", endpoint=endpoint.public_id)
    return len(rows)


def _drop(now: datetime) -> int:
    """End subscriptions without an expiry that have been suspended for long."""
    rows = list(_hopeless(now).order_by("pk")[:BATCH])
    return sum(_end_hopeless(row, now) for row in rows)


def _hopeless(now: datetime) -> EventSubscriptionQuerySet:
    return EventSubscription.objects.live(now).filter(
        expires_at=None, endpoint__paused_at__lt=now - DROPPED_AFTER
    )


def _end_hopeless(row: EventSubscription, now: datetime) -> bool:
    """End a suspended subscription; False if its client has just resumed it."""
    error = ForbiddenError("the callback failed for long", reason="Delivery failed")
    with locked_account(row.account_id):
        is_hopeless = _hopeless(now).filter(pk=row.pk).exists()
        return is_hopeless and terminate(row, error)


def _remove_ended() -> int:
    """Delete the endpoints of ended subscriptions for which no last message waits."""
    waiting = Delivery.objects.pending().values("endpoint")
    ended = EventSubscription.objects.filter(
        ended_at__isnull=False, endpoint__deleted_at=None
    ).exclude(endpoint__in=waiting.filter(endpoint__profile=EVENTS_PROFILE))
    rows = list(ended.select_related("endpoint").order_by("pk")[:BATCH])
    for row in rows:
        endpoints.delete(row.endpoint)
    return len(rows)
