"""Retention: removal of old events that nothing waits for, in short steps with pauses."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from webhooks_core.database import limits
from webhooks_core.database.clock import clock
from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    Endpoint,
    EndpointQueue,
    EngineState,
    Event,
)

EVENTS, ROWS = 500, 1000
# A pause after each step, half as long as the step: SQLite has a single writer.
PAUSE_PART, LEAST_PAUSE_S = 0.5, 0.005

# The creation time and the id of an event: the order of retention.
Position = tuple[datetime, int]


def remove_old(before: datetime, *, for_s: float) -> int:
    """Remove old events, the oldest first, for some seconds; return how many.

    Pending deliveries of subscribed endpoints and claimed ones are kept with their events, and
    an event is as old as its latest replay. Ends at once when work is due and no dispatcher is
    live. The next call continues behind the last event that this one has checked, and starts over
    after the newest: events that are kept do not use up the time of every call.
    """
    until, removed, checked = time.monotonic() + for_s, 0, _load_position()
    DispatcherLease.objects.filter(ended_at__lt=before).delete()
    rest = _old(before, after=checked)
    for events in chain(rest, _old(before, after=None)) if checked else rest:
        count = _remove([pk for _, pk in events], before, until)
        if count is None:
            break
        removed, checked = removed + count, events[-1]
        if time.monotonic() > until or _is_work_waiting():
            break
    else:
        checked = None
    at, event = checked or (None, None)
    EngineState.objects.filter(pk=1).update(retention_at=at, retention_event=event)
    return removed


def remove_events(*, profile: str, owner: str, until: float) -> bool:
    """Remove an owner's events of any age; return False if the time was over before.

    Kept are those with deliveries in flight, for a subscribed endpoint, or for a static one.
    """
    events = Event.objects.filter(profile=profile, owner=owner)
    events = events.exclude(delivery__endpoint__static_key__isnull=False)
    until_now, last = timezone.now() + timedelta(days=1), 0
    while pks := list(
        events.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:EVENTS]
    ):
        if time.monotonic() > until or _remove(pks, until_now, until) is None:
            return False
        last = pks[-1]
    return True


def remove_deliveries(endpoints: Any, *, until: float) -> bool:
    """Remove the deliveries of ended endpoints; return False if the time was over before.

    Their events may be of another profile, whose owner goes on.
    """
    rows = Delivery.objects.filter(endpoint__in=endpoints)
    while rows.exclude(_waits()).exists():
        if time.monotonic() > until:
            return False
        _remove_deliveries(rows)
    return True


def _load_position() -> Position | None:
    """Return the last event that this cycle has checked; None at its beginning."""
    state = EngineState.objects.filter(pk=1).first()
    if state is None or state.retention_at is None:
        return None
    return state.retention_at, state.retention_event or 0


def _old(before: datetime, *, after: Position | None) -> Iterator[list[Position]]:
    """Yield old events in batches, each event once."""
    rows = Event.objects.filter(created_at__lt=before)
    events = rows.order_by("created_at", "pk").values_list("created_at", "pk")
    while batch := list(_behind(events, after)[:EVENTS]):
        yield batch
        after = batch[-1]


def _behind(events: Any, after: Position | None) -> Any:
    if after is None:
        return events
    at, pk = after
    return events.filter(Q(created_at__gt=at) | Q(pk__gt=pk), created_at__gte=at)


def _remove(pks: Sequence[int], before: datetime, until: float) -> int | None:
    """Remove those of these events that nothing waits for, their deliveries first.

    Return how many; None if the time was over before all were removed.
    """
    kept = _kept_events(pks, before)
    doomed = [pk for pk in pks if pk not in kept]
    if not doomed:
        return 0
    while _remove_deliveries(Delivery.objects.filter(event__in=doomed)) == ROWS:
        if time.monotonic() > until:
            return None
    with _pause_after(), transaction.atomic():
        limits.limit_idle()
        # Leave out events that were replayed meanwhile; locked, they are not replayed from now on.
        events = Event.objects.filter(pk__in=doomed)
        list(events.order_by("pk").select_for_update().values_list("pk"))
        left = Delivery.objects.filter(event=OuterRef("pk"))
        empty = events.filter(~Exists(left))
        gone = list(empty.values_list("pk", flat=True))
        delete_unreferenced(Event.objects.filter(pk__in=gone))
    return len(gone)


def _kept_events(pks: Sequence[int], before: datetime) -> set[int]:
    kept = Delivery.objects.filter(_waits() | Q(created_at__gte=before), event__in=pks)
    return set(kept.values_list("event", flat=True))


def _remove_deliveries(rows: Any) -> int:
    """Remove some of these deliveries with their attempts; return how many."""
    with _pause_after(), transaction.atomic():
        limits.limit_idle()
        pks = list(rows.exclude(_waits()).values_list("pk", flat=True)[:ROWS])
        Attempt.objects.filter(delivery__in=pks).delete()
        delete_unreferenced(Delivery.objects.filter(pk__in=pks))
    return len(pks)


def delete_unreferenced(rows: Any) -> None:
    """Delete rows that no other row refers to; delete() would read every one, bodies too."""
    rows._raw_delete(rows.db)  # noqa: SLF001 - there is no public way


def _waits() -> Q:
    wanted = Q(endpoint__in=Endpoint.objects.subscribed()) | Q(claimed_by__isnull=False)
    return wanted & Q(status=Delivery.Status.PENDING)


@contextmanager
def _pause_after() -> Iterator[None]:
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    time.sleep(max(PAUSE_PART * took, LEAST_PAUSE_S))


def _is_work_waiting() -> bool:
    """Return True if work is due and no dispatcher is live: this worker should become one."""
    due = EndpointQueue.objects.due(clock.in_sql(), lease=0)
    return not DispatcherLease.objects.live().exists() and due.exists()
