"""An owner's stored events, newest first, with what became of each at each endpoint."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from webhooks_core.models import Delivery, Event, SkippedEvent
from webhooks_core.models.lookups import among
from webhooks_core.owners import cursors, id_ranges

MAX_FATES = 10_000  # of a page


class Fate(StrEnum):
    """What became of an event at an endpoint: the best of its deliveries."""

    DELIVERED = "delivered"
    PENDING = "pending"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class EndpointFate:
    """The fate at one endpoint; the delivery that decided it, "" if the event was skipped."""

    endpoint_id: str
    fate: Fate
    delivery_id: str = ""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    event: Event
    endpoints: Sequence[EndpointFate]


def search(
    *,
    profile: str,
    owner: str,
    event_types: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    before: int | None = None,
    size: int = 20,
) -> tuple[list[StoredEvent], str]:
    """Return a page of an owner's events, newest first, and the cursor behind it."""
    rows = Event.objects.filter(profile=profile, owner=owner).defer("body")
    if event_types:
        rows = rows.filter(type__in=event_types)
    rows = id_ranges.created_between(Event, since, until, profile=profile).of(rows)
    rows = cursors.created(rows, since, until)
    events, cursor = cursors.page(rows, before=before, size=size)
    fates = _fates([event.pk for event in events])
    return [StoredEvent(event, fates[event.pk]) for event in events], cursor


_BEST = {
    Delivery.Status.DELIVERED: Fate.DELIVERED,
    Delivery.Status.PENDING: Fate.PENDING,
    Delivery.Status.FAILED: Fate.FAILED,
}


def _fates(events: Sequence[int]) -> dict[int, list[EndpointFate]]:
    deliveries = Delivery.objects.filter(among(events, of="event_id"))
    rows = deliveries.filter(endpoint__deleted_at=None).order_by("pk")
    best: dict[tuple[int, str], tuple[Delivery.Status, str]] = {}
    ranks = list(_BEST)
    columns = ("event", "endpoint__public_id", "status", "public_id")
    for event, endpoint, number, public_id in rows.values_list(*columns)[:MAX_FATES]:
        status, key = Delivery.Status(number), (event, endpoint)
        if key not in best or ranks.index(status) <= ranks.index(best[key][0]):
            best[key] = status, public_id
    fates: dict[int, list[EndpointFate]] = defaultdict(list)
    for (event, endpoint), (status, public_id) in best.items():
        fates[event].append(EndpointFate(endpoint, _BEST[status], public_id))
    skipped = SkippedEvent.objects.filter(among(events, of="event_id"))
    skipped = skipped.filter(endpoint__deleted_at=None).order_by("pk")
    for event, endpoint in skipped.values_list("event", "endpoint__public_id")[
        :MAX_FATES
    ]:
        fates[event].append(EndpointFate(endpoint, Fate.SKIPPED))
    return fates
