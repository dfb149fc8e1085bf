"""Retention: what is old and awaited by nobody goes, in short steps that let others in between."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from webhooks_core.models import (
    Attempt,
    Delivery,
    Endpoint,
    Event,
    Lane,
    Shift,
    Trace,
)

EVENTS, ROWS = 500, 1000
# Half as long as the step before, and never none: SQLite has one writer, and it is not us.
PAUSE_PART, LEAST_PAUSE_S = 0.5, 0.005


def remove_old(before: datetime, *, for_s: float) -> int:
    """Remove events that nobody waits for, oldest first, for some seconds; return how many.

    What waits for a subscribed endpoint is never removed, whatever its age; nor is what is
    being tried. An event is as old as its latest replay. Ends at once when work is due and no shift is there to do it.
    """
    until, removed = time.monotonic() + for_s, 0
    Shift.objects.filter(ended_at__lt=before).delete()
    for pks in _old(before):
        removed += _remove(pks, before, until)
        if time.monotonic() > until or _is_wanted_elsewhere():
            break
    return removed


def _old(before: datetime) -> Iterator[list[int]]:
    """Yield the ids of old events, each once: those that stay are not looked at again."""
    # Those that have no delivery yet for some endpoints are awaited by these.
    over = Event.objects.filter(created_at__lt=before, fanout_after=None)
    events = over.order_by("created_at", "pk")
    rows = list(events.values_list("pk", "created_at")[:EVENTS])
    while rows:
        yield [pk for pk, _ in rows]
        pk, at = rows[-1]
        later = events.filter(Q(created_at__gt=at) | Q(pk__gt=pk), created_at__gte=at)
        rows = list(later.values_list("pk", "created_at")[:EVENTS])


def _remove(pks: Sequence[int], before: datetime, until: float) -> int:
    """Remove those of these events that nobody waits for, their deliveries first."""
    kept = set(_staying(before).filter(event__in=pks).values_list("event", flat=True))
    doomed = [pk for pk in pks if pk not in kept]
    while doomed and _remove_deliveries(doomed) == ROWS:
        if time.monotonic() > until:
            return 0  # the rest of them next time
    with _pause_after(), transaction.atomic():
        # Somebody may have replayed one meanwhile.
        left = Delivery.objects.filter(event=OuterRef("pk"))
        empty = Event.objects.filter(~Exists(left), pk__in=doomed)
        gone = list(empty.values_list("pk", flat=True))
        Trace.objects.filter(event__in=gone).delete()
        _delete(Event.objects.filter(pk__in=gone))
    return len(gone)


def _remove_deliveries(events: Sequence[int]) -> int:
    """Remove some deliveries of these events with their attempts; return how many."""
    with _pause_after(), transaction.atomic():
        rows = Delivery.objects.filter(event__in=events).exclude(_waits())
        pks = list(rows.values_list("pk", flat=True)[:ROWS])
        Attempt.objects.filter(delivery__in=pks).delete()
        _delete(Delivery.objects.filter(pk__in=pks))
    return len(pks)


def _delete(rows: Any) -> None:
    """Delete rows on which nothing hangs any more; delete() would read every one, bodies too."""
    rows._raw_delete(rows.db)  # noqa: SLF001 - there is no public way


def _staying(before: datetime) -> QuerySet[Delivery]:
    return Delivery.objects.filter(_waits() | Q(created_at__gte=before))


def _waits() -> Q:
    wanted = Q(endpoint__in=Endpoint.objects.subscribed()) | Q(claim__isnull=False)
    return wanted & Q(status=Delivery.Status.PENDING)


@contextmanager
def _pause_after() -> Iterator[None]:
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    time.sleep(max(PAUSE_PART * took, LEAST_PAUSE_S))


def _is_wanted_elsewhere() -> bool:
    """Tell whether this worker should rather begin a shift."""
    now = timezone.now()
    return (
        not Shift.objects.live(now).exists() and Lane.objects.due(now, owner=0).exists()
    )
