"""What people do with a delivery: resend it, retry it now, cancel it.

A replay is a new delivery of an event that was sent or failed, with the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Least
from django.utils import timezone

from webhooks_core import profiles
from webhooks_core.database.clock import clock
from webhooks_core.ids import public_id
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.worker import notify

BATCH = 200
CANCELLED = "cancelled"


class NotSubscribedError(Exception):
    """The endpoint is not subscribed, or the delivery is removed: nothing could be sent."""


def replay(delivery: Delivery, *, at: datetime | None = None) -> Delivery:
    """Queue the event of a delivery for its endpoint again; return the delivery that is sent.

    While one is pending for both, it is that one, due at `at` at the latest: two would send the
    event twice. Raises NotSubscribedError.
    """
    if not delivery.endpoint.is_subscribed:
        raise NotSubscribedError
    at = at or clock.recent()
    with transaction.atomic():
        # Locked: retention keeps the event from now on, and another replay sees this one.
        event = Event.objects.filter(pk=delivery.event_id)
        event.select_for_update(no_key=True).values_list("pk").first()
        pair = Delivery.objects.filter(
            event=delivery.event_id, endpoint=delivery.endpoint_id
        )
        if pending := pair.pending().order_by("pk").last():
            _advance(pending, at)
            return pending
        return _create(delivery, pair, at)


def _create(delivery: Delivery, pair: QuerySet[Delivery], at: datetime) -> Delivery:
    last = pair.aggregate(last=Max("replay_number"))["last"]
    if last is None:  # removed since it was read, with its account or for its age
        raise NotSubscribedError
    created = Delivery.objects.create(
        public_id=public_id(profiles.get(delivery.endpoint.profile).delivery_prefix),
        trigger=Delivery.Trigger.REPLAY,
        replay_number=last + 1,
        next_attempt_at=at,
        event_id=delivery.event_id,
        endpoint_id=delivery.endpoint_id,
    )
    notify.notify_on_commit([delivery.endpoint_id], at=at)
    return created


def retry_now(delivery: Delivery) -> bool:
    """Make a waiting delivery due; return False if it has ended or is being sent."""
    with transaction.atomic():
        return _advance(delivery, clock.recent())


def _advance(delivery: Delivery, at: datetime) -> bool:
    """Make a waiting delivery due at a time, or leave an earlier one; return False as above."""
    waiting = Delivery.objects.waiting().filter(pk=delivery.pk)
    advanced = waiting.update(next_attempt_at=Least("next_attempt_at", Value(at)))
    notify.notify_on_commit([delivery.endpoint_id], at=at)
    return advanced == 1


def cancel(delivery: Delivery) -> bool:
    """Fail a waiting delivery for good; return False if it has ended or is being sent.

    It counts neither as an attempt nor against the endpoint.
    """
    with transaction.atomic():
        waiting = Delivery.objects.waiting().filter(pk=delivery.pk)
        if not waiting.fail(error=CANCELLED):
            return False
        # The next delivery of an endpoint that is `in_order` may have waited for this one.
        notify.notify_on_commit([delivery.endpoint_id])
    return True


def failed_since(endpoint: Endpoint, since: datetime) -> QuerySet[Delivery]:
    """Return the deliveries that failed since a time and were not replayed, the oldest first."""
    later = Q(replay_number__gt=OuterRef("replay_number"))
    replayed = Delivery.objects.filter(
        later | Q(status=Delivery.Status.PENDING),
        event=OuterRef("event"),
        endpoint=OuterRef("endpoint"),
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
    start = clock.recent()
    # A replay that fails again meanwhile is not replayed.
    failed = failed_since(endpoint, since).filter(created_at__lt=timezone.now())
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
