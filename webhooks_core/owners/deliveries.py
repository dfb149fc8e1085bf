"""The deliveries of an owner: by state and event; one with all of its attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from heapq import nlargest
from itertools import chain

from django.db.models import Q, QuerySet
from django.utils import timezone

from webhooks_core import ids
from webhooks_core.conf import webhook_settings
from webhooks_core.database.statements import among
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.models.deliveries import DeliveryQuerySet, superseded


class State(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"
    FAILED_UNDELIVERED = "failed_undelivered"  # and the event has not arrived since


Status = Delivery.Status
CONDITIONS = {
    State.PENDING: Q(status=Status.PENDING),
    State.DELIVERED: Q(status=Status.DELIVERED),
    State.FAILED: Q(status=Status.FAILED),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """Which deliveries."""

    state: State | None = None
    event_id: str = ""

    def of(self, rows: DeliveryQuerySet) -> DeliveryQuerySet:
        if self.state is State.FAILED_UNDELIVERED:
            rows = rows.filter(~superseded(), status=Status.FAILED)
        elif self.state:
            rows = rows.filter(CONDITIONS[self.state])
        if self.event_id:
            rows = rows.filter(event__public_id=self.event_id)
        return rows


def newest(
    endpoints: QuerySet[Endpoint],
    wanted: DeliveryFilter,
    *,
    before: int | None = None,
    size: int,
) -> list[Delivery]:
    """Return the newest deliveries of some endpoints, with event and endpoint, without bodies.

    `before` is the key of the last one of the page before. Of each endpoint the newest are read
    from its index, by a query each, whatever the others have.
    """
    rows = wanted.of(Delivery.objects.order_by("-pk"))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    own = rows.values_list("pk", flat=True)
    keys = endpoints.order_by().values_list("pk", flat=True)
    lists = (own.filter(endpoint=key)[:size] for key in keys)
    pks = nlargest(size, chain.from_iterable(lists))
    found = Delivery.objects.filter(among(pks)).order_by("-pk")
    return list(found.select_related("event", "endpoint").defer("event__body"))


def is_past_retention(public_id: str, prefix: str) -> bool:
    """Return True for an id that was made so long ago that its row may have been removed."""
    kept = timedelta(days=webhook_settings.RETENTION_DAYS)
    is_id = ids.is_id(public_id, prefix)
    return is_id and ids.created_at(public_id) < timezone.now() - kept


def others(
    delivery: Delivery, endpoints: QuerySet[Endpoint], *, most: int
) -> Sequence[Delivery]:
    """Return the event's other deliveries to some endpoints, newest first."""
    same = Delivery.objects.filter(event=delivery.event_id, endpoint__in=endpoints)
    rows = same.exclude(pk=delivery.pk).select_related("endpoint")
    return list(rows.order_by("-pk")[:most])
