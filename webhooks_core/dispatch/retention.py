"""Retention: what is old and awaited by nobody goes, in short steps that let others in between."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    Endpoint,
    EndpointQueue,
    EngineState,
    Event,
    Trace,
)

EVENTS, ROWS = 500, 1000
# Half as long as the step before, and never none: SQLite has one writer, and it is not us.
PAUSE_PART, LEAST_PAUSE_S = 0.5, 0.005


# The creation time and the id of an event: retention goes in this order.
Position = tuple[datetime, int]


def remove_old(before: datetime, *, for_s: float) -> int:
    """Remove events that nobody waits for, oldest first, for some seconds; return how many.

    What waits for a subscribed endpoint is never removed, whatever its age; nor is what is
    being tried. An event is as old as its latest replay. Ends at once when work is due and no
    shift is there to do it. The next call continues behind the last event that this one
    looked at, and after the newest with the oldest: events that stay do not use up the time
    of every call.
    """
    until, removed, reached = time.monotonic() + for_s, 0, _reached()
    DispatcherLease.objects.filter(ended_at__lt=before).delete()
    rest = _old(before, after=reached)
    for events in chain(rest, _old(before, after=None)) if reached else rest:
        count = _remove([pk for _, pk in events], before, until)
        if count is None:
            break
        removed, reached = removed + count, events[-1]
        if time.monotonic() > until or _is_wanted_elsewhere():
            break
    else:
        reached = None
    _keep(reached)
    return removed


def _reached() -> Position | None:
    """Return the last event that this cycle has looked at; None at its beginning."""
    bell = EngineState.objects.filter(pk=1).first()
    if bell is None or bell.retention_at is None:
        return None
    return bell.retention_at, bell.retention_event or 0


def _keep(reached: Position | None) -> None:
    at, event = reached or (None, None)
    EngineState.objects.filter(pk=1).update(retention_at=at, retention_event=event)


def _old(before: datetime, *, after: Position | None) -> Iterator[list[Position]]:
    """Yield old events, each once: those that stay are not looked at again."""
    # Those that have no delivery yet for some endpoints are awaited by these.
    over = Event.objects.filter(created_at__lt=before, fanout_after=None)
    events = over.order_by("created_at", "pk").values_list("created_at", "pk")
    while rows := list(_behind(events, after)[:EVENTS]):
        yield rows
        after = rows[-1]


def _behind(events: Any, after: Position | None) -> Any:
    if after is None:
        return events
    at, pk = after
    return events.filter(Q(created_at__gt=at) | Q(pk__gt=pk), created_at__gte=at)


def _remove(pks: Sequence[int], before: datetime, until: float) -> int | None:
    """Remove those of these events that nobody waits for, their deliveries first.

    Return how many; None when the time was over before all were removed.
    """
    kept = set(_staying(before).filter(event__in=pks).values_list("event", flat=True))
    doomed = [pk for pk in pks if pk not in kept]
    if not doomed:
        return 0
    while doomed and _remove_deliveries(doomed) == ROWS:
        if time.monotonic() > until:
            return None
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
    wanted = Q(endpoint__in=Endpoint.objects.subscribed()) | Q(claimed_by__isnull=False)
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
        not DispatcherLease.objects.live(now).exists()
        and EndpointQueue.objects.due(now, lease=0).exists()
    )
