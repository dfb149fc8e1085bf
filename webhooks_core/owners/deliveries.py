"""The deliveries of an owner: by state, event and time; one with all of its attempts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from heapq import nlargest
from itertools import chain
from typing import Any

from django.db.models import OuterRef, Q, QuerySet
from django.utils import timezone

from webhooks_core import ids
from webhooks_core.conf import webhook_settings
from webhooks_core.models import Attempt, Delivery, Endpoint
from webhooks_core.models.deliveries import DeliveryQuerySet, superseded
from webhooks_core.models.lookups import IdList, among


class State(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"
    FAILED_UNDELIVERED = "failed_undelivered"  # and the event has not arrived since


class Resent(StrEnum):
    """What became of the event of a failed delivery after it was resent."""

    DELIVERED = "delivered"
    PENDING = "pending"
    FAILED = "failed"


Status = Delivery.Status
CONDITIONS = {
    State.PENDING: Q(status=Status.PENDING),
    State.DELIVERED: Q(status=Status.DELIVERED),
    State.FAILED: Q(status=Status.FAILED),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """Which deliveries; `since` and `until`, which is excluded, are about their creation."""

    state: State | None = None
    event_id: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def of(self, rows: DeliveryQuerySet) -> DeliveryQuerySet:
        if self.state is State.FAILED_UNDELIVERED:
            rows = rows.filter(~superseded(), status=Status.FAILED)
        elif self.state:
            rows = rows.filter(CONDITIONS[self.state])
        if self.event_id:
            rows = rows.filter(event__public_id=self.event_id)
        if self.since:
            rows = rows.filter(created_at__gte=self.since)
        return rows.filter(created_at__lt=self.until) if self.until else rows


def newest(
    endpoints: QuerySet[Endpoint],
    wanted: DeliveryFilter,
    *,
    before: int | None = None,
    size: int,
) -> list[Delivery]:
    """Return the newest deliveries of some endpoints, with event and endpoint, without bodies.

    `before` is the key of the last one of the page before. Of each endpoint the newest are read
    from its index, whatever the others have.
    """
    rows = wanted.of(Delivery.objects.filter(endpoint=OuterRef("pk"))).order_by("-pk")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    lists = endpoints.order_by().values_list(
        IdList(rows.values("pk")[:size]), flat=True
    )
    pks = nlargest(size, chain.from_iterable(filter(None, lists)))
    found = Delivery.objects.filter(among(pks)).order_by("-pk")
    return list(found.select_related("event", "endpoint").defer("event__body"))


def resent(deliveries: Collection[Delivery]) -> dict[int, Resent]:
    """Return by key what became of failed deliveries that were resent; by one query."""
    failed = [row for row in deliveries if row.status == Status.FAILED]
    others = Delivery.objects.filter(
        among({row.event_id for row in failed}, of="event_id"),
        among({row.endpoint_id for row in failed}, of="endpoint_id"),
    ).values_list("event", "endpoint", "replay_number", "status")
    later = list(others)
    marks: dict[int, Resent] = {}
    for row in failed:
        statuses = {
            status
            for event, endpoint, number, status in later
            if (event, endpoint) == (row.event_id, row.endpoint_id)
            and number > row.replay_number
        }
        # The best of them decides.
        for status in (Status.FAILED, Status.PENDING, Status.DELIVERED):
            if status in statuses:
                marks[row.pk] = Resent(Status(status).label.lower())
    return marks


def is_past_retention(public_id: str, prefix: str) -> bool:
    """Return True for an id that was made so long ago that its row may have been removed."""
    kept = timedelta(days=webhook_settings.RETENTION_DAYS)
    is_id = ids.is_id(public_id, prefix)
    return is_id and ids.created_at(public_id) < timezone.now() - kept


def snapshot(delivery: Delivery) -> tuple[Delivery, list[Attempt]]:
    """Return a delivery, read with its event and endpoint, and its attempts, as of one moment.

    Each attempt is read with the delivery. If there is none yet, the delivery was read before.
    """
    rows = delivery.attempt_set.select_related("delivery").order_by("number")
    attempts = list(rows)
    if not attempts:
        return delivery, attempts
    current = attempts[0].delivery
    current.event, current.endpoint = delivery.event, delivery.endpoint
    return current, attempts


def header_lines(text: str | None) -> list[tuple[str, str]]:
    """Return the names and values of stored header lines."""
    pairs = (line.partition(": ") for line in (text or "").split("\r\n") if line)
    return [(name, value) for name, _, value in pairs]


def row_of(delivery: Delivery) -> dict[str, Any]:
    """Return a delivery as the row from which a product's record is made."""
    columns = ("public_id", "status", "attempts", "last_error")
    times = ("next_attempt_at", "delivered_at", "created_at")
    return {name: getattr(delivery, name) for name in (*columns, *times)} | {
        "endpoint_id": delivery.endpoint.public_id,
        "event__public_id": delivery.event.public_id,
        "event__type": delivery.event.type,
    }


def others(
    delivery: Delivery, endpoints: QuerySet[Endpoint], *, most: int
) -> Sequence[Delivery]:
    """Return the event's other deliveries to some endpoints, newest first."""
    same = Delivery.objects.filter(event=delivery.event_id, endpoint__in=endpoints)
    rows = same.exclude(pk=delivery.pk).select_related("endpoint")
    return list(rows.order_by("-pk")[:most])
