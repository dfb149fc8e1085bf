"""Replays: a new delivery of an event that was sent or failed, with the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, QuerySet
from django.utils import timezone

from webhooks_core import profiles
from webhooks_core.formats import public_id
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.worker import notify

BATCH = 200


class NotSubscribedError(Exception):
    """The endpoint is not subscribed, or the delivery is removed: nothing could be sent."""


def replay(delivery: Delivery, *, at: datetime | None = None) -> Delivery:
    """Queue the event of a delivery for its endpoint again. Raises NotSubscribedError."""
    if not delivery.endpoint.is_subscribed:
        raise NotSubscribedError
    with transaction.atomic():
        return _create(delivery, at or timezone.now())


def _create(delivery: Delivery, at: datetime) -> Delivery:
    # Locked: retention keeps the event from now on, and another replay takes another number.
    event = Event.objects.filter(pk=delivery.event_id).select_for_update(no_key=True)
    event.values_list("pk").first()
    pair = {"event_id": delivery.event_id, "endpoint_id": delivery.endpoint_id}
    deliveries = Delivery.objects.filter(**pair)
    last = deliveries.aggregate(last=Max("replay_number"))["last"]
    if last is None:  # removed since it was read, with its account or for its age
        raise NotSubscribedError
    created = Delivery.objects.create(
        public_id=public_id(profiles.get(delivery.endpoint.profile).delivery_prefix),
        trigger=Delivery.Trigger.REPLAY,
        replay_number=last + 1,
        next_attempt_at=at,
        **pair,
    )
    notify.notify_on_commit([delivery.endpoint_id], at=at)
    return created


def failed_since(endpoint: Endpoint, since: datetime) -> QuerySet[Delivery]:
    """Return the deliveries that failed since a time and were not replayed, the oldest first."""
    replayed = Delivery.objects.filter(
        event=OuterRef("event"),
        endpoint=OuterRef("endpoint"),
        replay_number__gt=OuterRef("replay_number"),
    )
    failed = Delivery.objects.filter(
        ~Exists(replayed),
        endpoint=endpoint,
        status=Delivery.Status.FAILED,
        created_at__gte=since,
    )
    return failed.select_related("endpoint").order_by("pk")


def replay_failed(
    endpoint: Endpoint,
    *,
    since: datetime,
    per_second: float = 50,
    on_progress: Callable[[int, int], object] = lambda *_: None,
) -> int:
    """Queue all that failed since a time, spread over time; return how many.

    Calls `on_progress` with the number queued and the total. After an interruption, another call
    continues. Raises NotSubscribedError.
    """
    if not endpoint.is_subscribed:
        raise NotSubscribedError
    start = timezone.now()
    # A replay that fails again meanwhile is not replayed.
    failed = failed_since(endpoint, since).filter(created_at__lt=start)
    total = failed.count()
    queued = 0
    while part := list(failed[:BATCH]):
        with transaction.atomic():
            # By event: replays to two endpoints lock their common events in one order.
            part.sort(key=lambda delivery: delivery.event_id)
            for number, delivery in enumerate(part, start=queued):
                replay(delivery, at=start + timedelta(seconds=number / per_second))
        queued += len(part)
        on_progress(queued, max(total, queued))
    return queued
