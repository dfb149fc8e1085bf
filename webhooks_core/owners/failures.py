"""Everything that failed since a time, of many endpoints: counted first, then sent again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from webhooks_core.models import Delivery, Endpoint
from webhooks_core.models.deliveries import DeliveryQuerySet
from webhooks_core.owners import replays
from webhooks_core.owners.changes import Actor
from webhooks_core.owners.id_ranges import created_between


@dataclass(frozen=True, slots=True)
class Failures:
    """What failed since a time, each number up to one more than what was asked for.

    `found` deliveries have neither arrived nor wait; `idle` of them are for endpoints that receive
    nothing now. Of `arrived` ones the event arrived in another way since.
    """

    found: int
    idle: int
    arrived: int

    @property
    def sendable(self) -> int:
        return self.found - self.idle


@dataclass(slots=True)
class Sent:
    """How much was queued for each endpoint, and the endpoints that receive nothing now."""

    queued: dict[Endpoint, int] = field(default_factory=dict)
    left_out: list[Endpoint] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.queued.values())


def endpoints_of(since: datetime) -> QuerySet[Endpoint]:
    """Return the endpoints with a failed delivery since a time that neither arrived nor waits."""
    failed = _failed(since).undelivered()
    return Endpoint.objects.filter(pk__in=failed.order_by().values("endpoint"))


def count(since: datetime, *, most: int) -> Failures:
    """Count what failed since a time, by three queries."""
    found = _failed(since).undelivered()
    receiving = Endpoint.objects.subscribed().values("pk")
    return Failures(
        found=found[: most + 1].count(),
        idle=found.exclude(endpoint__in=receiving)[: most + 1].count(),
        arrived=arrived(since)[: most + 1].count(),
    )


def arrived(since: datetime) -> QuerySet[Delivery]:
    """Return the deliveries that failed since a time, and whose event arrived in another way."""
    others = Delivery.objects.filter(
        status=Delivery.Status.DELIVERED,
        event=OuterRef("event"),
        endpoint=OuterRef("endpoint"),
    )
    return _failed(since).filter(Exists(others))


def _failed(since: datetime) -> DeliveryQuerySet:
    rows = Delivery.objects.filter(status=Delivery.Status.FAILED, created_at__gte=since)
    return created_between(Delivery, since).of(rows)


def send_again(
    endpoints: Iterable[Endpoint],
    *,
    since: datetime,
    by: Actor,
    per_second: float = 50,
    on_progress: Callable[[int, int], object] = lambda *_: None,
) -> Sent:
    """Queue what failed since a time for each endpoint that receives something.

    Each endpoint has its own `per_second`. After an interruption, another call continues.
    """
    sent = Sent()
    for endpoint in endpoints:
        try:
            queued = replays.replay_failed(
                endpoint,
                since=since,
                by=by,
                per_second=per_second,
                on_progress=on_progress,
            )
        except replays.NotSubscribedError:
            sent.left_out.append(endpoint)
        else:
            sent.queued[endpoint] = queued
    return sent
