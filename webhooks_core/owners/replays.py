"""What people do with a delivery: resend it, retry it now, cancel it.

A replay is a new delivery of an event that was sent or failed, with the same bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.db.models import Max, QuerySet, Value
from django.db.models.functions import Least
from django.utils import timezone

from webhooks_core import profiles
from webhooks_core.database.clock import clock
from webhooks_core.ids import public_id
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.models.endpoints import HANGS_AFTER
from webhooks_core.models.lookups import among
from webhooks_core.owners import changes
from webhooks_core.owners.changes import Action, Actor
from webhooks_core.times import iso
from webhooks_core.worker import notify

BATCH = 200
CANCELLED = "cancelled"
CANCELLED_BY_OWNER = "cancelled by the owner"
ROUND = timedelta(microseconds=1)


class NotSubscribedError(Exception):
    """The endpoint is not subscribed, or the delivery is removed: nothing could be sent."""


class RemovedError(NotSubscribedError):
    """The event was removed, for its age or with its account."""


def due_first(endpoint: Endpoint) -> datetime:
    """Return a due time before those of all that waits for an endpoint, in a transaction.

    A queue is served by due time: no column and no index of its own is needed. What is tried and
    fails gets an ordinary due time again.
    """
    now = clock.recent()
    _probe_soon(endpoint)
    waiting = Delivery.objects.waiting().filter(endpoint=endpoint)
    first = waiting.order_by("next_attempt_at").values_list("next_attempt_at").first()
    return min(now, first[0] - ROUND) if first and first[0] else now


def _probe_soon(endpoint: Endpoint) -> None:
    """Let the pauses between the probes of an endpoint that hangs start anew, at one second."""
    long = Endpoint.objects.filter(pk=endpoint.pk, hanging_since__isnull=False)
    long.filter(timeouts__gt=HANGS_AFTER).update(timeouts=HANGS_AFTER)


def replay(delivery: Delivery, *, at: datetime | None = None) -> Delivery:
    """Queue the event of a delivery for its endpoint again; return the delivery that is sent.

    While one is pending for both, it is that one, due at `at` at the latest: two would send the
    event twice. Raises NotSubscribedError, or RemovedError.
    """
    at = at or clock.recent()
    return _replay(delivery, at, Delivery.Trigger.REPLAY)[0]


def _replay(
    delivery: Delivery, at: datetime, trigger: Delivery.Trigger
) -> tuple[Delivery, bool]:
    """Return the delivery that is sent, and True if it is a new one."""
    if not delivery.endpoint.is_subscribed:
        raise NotSubscribedError
    with transaction.atomic():
        # Locked: retention keeps the event from now on, and another replay sees this one.
        event = Event.objects.filter(pk=delivery.event_id)
        event.select_for_update(no_key=True).values_list("pk").first()
        pair = Delivery.objects.filter(
            event=delivery.event_id, endpoint=delivery.endpoint_id
        )
        if pending := pair.pending().order_by("pk").last():
            _advance(pending, at)
            return pending, False
        return _create(delivery, pair, at, trigger), True


def _create(
    delivery: Delivery,
    pair: QuerySet[Delivery],
    at: datetime,
    trigger: Delivery.Trigger,
) -> Delivery:
    last = pair.aggregate(last=Max("replay_number"))["last"]
    if last is None:  # removed since it was read, with its account or for its age
        raise RemovedError
    created = Delivery.objects.create(
        public_id=public_id(profiles.get(delivery.endpoint.profile).delivery_prefix),
        trigger=trigger,
        replay_number=last + 1,
        next_attempt_at=at,
        event_id=delivery.event_id,
        endpoint_id=delivery.endpoint_id,
    )
    notify.notify_on_commit([delivery.endpoint_id], at=at)
    return created


def resend(delivery: Delivery, *, by: Actor, at: datetime | None = None) -> Delivery:
    """As replay(), for a person: the next request of the endpoint, unless there is an `at`."""
    with transaction.atomic():
        at = at or due_first(delivery.endpoint)
        sent, is_new = _replay(delivery, at, Delivery.Trigger.MANUAL)
        # Of a pending one an attempt was asked for.
        action, about = (Action.RESENT, delivery) if is_new else (Action.RETRIED, sent)
        subject = about.public_id
        changes.record(delivery.endpoint_id, action, by=by, subject=subject)
    return sent


def resend_all(deliveries: Sequence[Delivery], *, by: Actor) -> list[Delivery | None]:
    """Resend each, in this order, before all that waits; None for what cannot be sent."""
    first: dict[int, datetime] = {}
    sent: list[Delivery | None] = []
    for number, delivery in enumerate(deliveries):
        if delivery.endpoint_id not in first:
            front = due_first(delivery.endpoint)
            first[delivery.endpoint_id] = front - len(deliveries) * ROUND
        at = first[delivery.endpoint_id] + number * ROUND
        try:
            sent.append(resend(delivery, by=by, at=at))
        except NotSubscribedError:
            sent.append(None)
    return sent


def retry_now(delivery: Delivery, *, by: Actor) -> bool:
    """Make a waiting delivery the next request of its endpoint, also if it is due already.

    Returns False if it has ended or is being sent.
    """
    with transaction.atomic():
        if not _advance(delivery, due_first(delivery.endpoint)):
            return False
        changes.record(
            delivery.endpoint_id, Action.RETRIED, by=by, subject=delivery.public_id
        )
    return True


def _advance(delivery: Delivery, at: datetime) -> bool:
    """Make a waiting delivery due at a time, or leave an earlier one; return False as above."""
    waiting = Delivery.objects.waiting().filter(pk=delivery.pk)
    advanced = waiting.update(next_attempt_at=Least("next_attempt_at", Value(at)))
    notify.notify_on_commit([delivery.endpoint_id], at=at)
    return advanced == 1


def cancel(delivery: Delivery, *, by: Actor) -> bool:
    """Fail a waiting delivery for good; return False if it has ended or is being sent.

    It counts neither as an attempt nor against the endpoint.
    """
    with transaction.atomic():
        waiting = Delivery.objects.waiting().filter(pk=delivery.pk)
        if not waiting.fail(error=CANCELLED_BY_OWNER if by.is_owner else CANCELLED):
            return False
        changes.record(
            delivery.endpoint_id, Action.CANCELLED, by=by, subject=delivery.public_id
        )
    return True


class Resent(StrEnum):
    """What became of the event of a failed delivery after it was sent again."""

    DELIVERED = "delivered"
    PENDING = "pending"
    FAILED = "failed"


def resent(deliveries: Collection[Delivery]) -> dict[int, Resent]:
    """Return by key what became of failed deliveries that were resent; by one query."""
    failed = [row for row in deliveries if row.status == Delivery.Status.FAILED]
    later: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event, endpoint, number, status in _pairs_of(failed):
        later[event, endpoint].append((number, status))
    marks: dict[int, Resent] = {}
    for row in failed:
        others = later[row.event_id, row.endpoint_id]
        statuses = {status for number, status in others if number > row.replay_number}
        if statuses:
            marks[row.pk] = next(
                _MARKS[status] for status in _MARKS if status in statuses
            )
    return marks


# The first that applies decides.
_MARKS = {
    Delivery.Status.DELIVERED: Resent.DELIVERED,
    Delivery.Status.PENDING: Resent.PENDING,
    Delivery.Status.FAILED: Resent.FAILED,
}


def arrived(deliveries: Collection[Delivery]) -> int:
    """Return of how many deliveries the event has arrived at their endpoint, by any of them."""
    delivered = {
        (event, endpoint)
        for event, endpoint, _, status in _pairs_of(deliveries)
        if status == Delivery.Status.DELIVERED
    }
    return sum((row.event_id, row.endpoint_id) in delivered for row in deliveries)


def _pairs_of(deliveries: Collection[Delivery]) -> QuerySet[Any, Any]:
    """Return event, endpoint, replay number and status of all deliveries of the same events."""
    events = {row.event_id for row in deliveries}
    endpoints = {row.endpoint_id for row in deliveries}
    rows = Delivery.objects.filter(
        among(events, of="event_id"), among(endpoints, of="endpoint_id")
    )
    return rows.values_list("event", "endpoint", "replay_number", "status")


def failed_since(endpoint: Endpoint, since: datetime) -> QuerySet[Delivery]:
    """Return the deliveries that failed since a time and were not replayed, the oldest first."""
    failed = Delivery.objects.undelivered().filter(
        endpoint=endpoint, created_at__gte=since
    )
    return failed.select_related("endpoint").order_by("pk")


def replay_failed(
    endpoint: Endpoint,
    *,
    since: datetime,
    by: Actor,
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
    if total:
        details = {"since": iso(since), "count": total}
        changes.record(endpoint.pk, Action.RESENT, by=by, details=details)
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
