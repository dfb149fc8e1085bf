"""Retention: removal of old events that nothing waits for, in short steps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from webhooks_core.database.clock import clock
from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    Endpoint,
    EndpointQueue,
    Event,
)

EVENTS, ROWS = 500, 1000
# Between two steps, so that others may write: SQLite has a single writer.
PAUSE_S = 0.005


def remove_old(before: datetime, *, for_s: float) -> int:
    """Remove old events, the oldest first, for some seconds; return how many.

    Pending deliveries of subscribed endpoints and claimed ones are kept with their events, and
    an event is as old as its latest resend. Ends at once when work is due and no dispatcher is
    live.
    """
    until, removed = time.monotonic() + for_s, 0
    kept = Delivery.objects.filter(waits() | Q(created_at__gte=before))
    old = Event.objects.filter(
        ~Exists(kept.filter(event=OuterRef("pk"))), created_at__lt=before
    )
    oldest = old.order_by("created_at", "pk").values_list("pk", flat=True)
    while pks := list(oldest[:EVENTS]):
        removed += remove_events(pks)
        if time.monotonic() > until or _is_work_waiting():
            break
    return removed


def remove_events(pks: Sequence[int]) -> int:
    """Remove events with their deliveries, except those with a new one; return how many."""
    while remove_deliveries(Delivery.objects.filter(event__in=pks)):
        pass
    with transaction.atomic():
        # Leave out events that were resent meanwhile; locked, they are not resent from now on.
        events = Event.objects.filter(pk__in=pks)
        list(events.order_by("pk").select_for_update().values_list("pk"))
        left = Delivery.objects.filter(event=OuterRef("pk"))
        gone = list(events.filter(~Exists(left)).values_list("pk", flat=True))
        delete_unreferenced(Event.objects.filter(pk__in=gone))
    time.sleep(PAUSE_S)
    return len(gone)


def remove_deliveries(rows: QuerySet[Delivery]) -> int:
    """Remove some of these deliveries with their attempts, but none that waits; return how many."""
    with transaction.atomic():
        pks = list(rows.exclude(waits()).values_list("pk", flat=True)[:ROWS])
        Attempt.objects.filter(delivery__in=pks).delete()
        delete_unreferenced(Delivery.objects.filter(pk__in=pks))
    time.sleep(PAUSE_S)
    return len(pks)


def delete_unreferenced(rows: Any) -> None:
    """Delete rows that no other row refers to; delete() would read every one, bodies too."""
    rows._raw_delete(rows.db)  # noqa: SLF001 - there is no public way


def waits() -> Q:
    """Return the condition that a delivery is to be sent, or is being sent."""
    wanted = Q(endpoint__in=Endpoint.objects.receiving()) | Q(claimed_by__isnull=False)
    return wanted & Q(status=Delivery.Status.PENDING)


def _is_work_waiting() -> bool:
    """Return True if work is due and no dispatcher is live: this worker should become one."""
    due = EndpointQueue.objects.due(clock.in_sql(), lease=0)
    return not DispatcherLease.objects.live().exists() and due.exists()
