"""The deliveries of an owner: by state and event; one with all of its attempts."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from heapq import nlargest
from itertools import chain

from django.db.models import QuerySet

from webhooks_core.database.statements import among
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.models.deliveries import DeliveryQuerySet


class State(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"
    FAILED_UNDELIVERED = "failed_undelivered"  # and the event has not arrived since


def narrowed(
    rows: DeliveryQuerySet, *, state: State | None = None, event_id: str = ""
) -> DeliveryQuerySet:
    """Return those in a state, and of an event, where these are given."""
    if state is State.FAILED_UNDELIVERED:
        rows = rows.undelivered()
    elif state:
        rows = rows.filter(status=Delivery.Status[state.name])
    return rows.filter(event__public_id=event_id) if event_id else rows


def newest(
    endpoints: QuerySet[Endpoint],
    *,
    state: State | None = None,
    event_id: str = "",
    before: int | None = None,
    size: int,
) -> list[Delivery]:
    """Return the newest deliveries of some endpoints, with event and endpoint, without bodies.

    `before` is the key of the last one of the page before. Of each endpoint the newest are read
    from its index, by a query each, whatever the others have.
    """
    ordered = Delivery.objects.order_by("-pk")
    rows = narrowed(ordered, state=state, event_id=event_id)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    own = rows.values_list("pk", flat=True)
    keys = endpoints.order_by().values_list("pk", flat=True)
    lists = (own.filter(endpoint=key)[:size] for key in keys)
    pks = nlargest(size, chain.from_iterable(lists))
    found = Delivery.objects.filter(among(pks)).order_by("-pk")
    return list(found.select_related("event", "endpoint").defer("event__body"))


def others(
    delivery: Delivery, endpoints: QuerySet[Endpoint], *, most: int
) -> Sequence[Delivery]:
    """Return the event's other deliveries to some endpoints, newest first."""
    same = Delivery.objects.filter(event=delivery.event_id, endpoint__in=endpoints)
    rows = same.exclude(pk=delivery.pk).select_related("endpoint")
    return list(rows.order_by("-pk")[:most])
