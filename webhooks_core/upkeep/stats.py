"""Statistics of the engine: what waits, for how long, and whether a worker is alive."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Min, Q

from webhooks_core.models import Delivery, DispatcherLease, Endpoint, EngineState
from webhooks_core.models.endpoints import HANGS_AFTER

# The sweep is due every minute, and the scheduler of a task cluster runs twice a minute.
SILENT_AFTER = timedelta(minutes=3)


def last_seen_at(now: datetime) -> datetime | None:
    """Return when a worker last ran: now if a dispatcher is live, else at the last scheduled sweep."""
    if DispatcherLease.objects.live().exists():
        return now
    return EngineState.objects.filter(pk=1).values_list("swept_at", flat=True).first()


def oldest_due(now: datetime) -> timedelta:
    """Return for how long the most overdue delivery has waited; zero if none is overdue.

    Suspended deliveries are not due, and those of an endpoint that hangs wait for each other. One
    index lookup per queue that is due or leased, however long the backlog and the list of
    endpoints are.
    """
    # What a publisher that died did not notify is missing until the sweep finds it.
    busy = Q(queue__next_due_at__lte=now) | Q(queue__leased_by__isnull=False)
    rows = Endpoint.objects.receiving().filter(busy, timeouts__lt=HANGS_AFTER)
    earliest: datetime | None = rows.aggregate(at=Min(Delivery.objects.next_due()))[
        "at"
    ]
    return max(now - earliest, timedelta(0)) if earliest else timedelta(0)
