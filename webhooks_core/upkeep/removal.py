"""Removal of rows in short steps: of old events that nothing waits for, and of owners that have ended.

Endpoints end with their account; the rows are removed after the commit.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from webhooks_core.database.clock import clock
from webhooks_core.dispatch import notify
from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    Endpoint,
    EndpointQueue,
    EndpointSecret,
    Event,
    OwnerRemoval,
)

EVENTS, ROWS = 500, 1000
BATCH = 200  # of rows of products
REMOVE = "webhooks_core.tasks.remove_ended_owners"
# As long as a lease: what is claimed then may be a dead dispatcher's.
SETTLED_AFTER = timedelta(seconds=15)
# Of the minute between two scheduled sweeps.
REMOVAL_S = 40.0
POLL_S = 0.05
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


def end_owner(*, profile: str, owner: str) -> None:
    """End all that an owner has in a profile, static endpoints excepted, for good.

    Joins the caller's transaction, and locks nothing that a dispatcher waits for. After its commit
    nothing is claimed; what was claimed is sent within a second or dropped. A task removes the
    rows; if it is lost, the sweep does.
    """
    now = timezone.now()
    with transaction.atomic():
        endpoints = Endpoint.objects.of(profile, owner).filter(static_key=None)
        endpoints.end(now)
        if not (_ended(profile, owner).exists() or _events(profile, owner).exists()):
            return
        OwnerRemoval.objects.update_or_create(
            profile=profile, owner=owner, defaults={"ended_at": now}
        )
        transaction.on_commit(lambda: notify.enqueue(REMOVE), robust=True)


def remove_ended_owners(*, for_s: float = REMOVAL_S) -> int:
    """Remove the rows of owners that have ended, for some seconds; return how many are done.

    Deliveries in flight are left to a later call.
    """
    until = time.monotonic() + for_s
    removals = OwnerRemoval.objects.order_by("pk")
    return sum(_remove(removal, until) for removal in removals)


def remove_owner(*, profile: str, owner: str) -> None:
    """Remove the rows of an owner that has ended; wait for what is in flight."""
    ended = OwnerRemoval.objects.filter(profile=profile, owner=owner)
    while removal := ended.first():
        if not _remove(removal, time.monotonic() + REMOVAL_S):
            time.sleep(POLL_S)


def _remove(removal: OwnerRemoval, until: float) -> bool:
    """Remove the rows of an owner in short steps; return False if some are left."""
    profile, owner = removal.profile, removal.owner
    static = Delivery.objects.filter(
        event=OuterRef("pk"), endpoint__static_key__isnull=False
    )
    events = _events(profile, owner).filter(~Exists(static)).order_by("pk")
    pks = events.values_list("pk", flat=True)
    # Those of another profile, whose owner goes on, too.
    deliveries = Delivery.objects.filter(endpoint__in=_ended(profile, owner))
    if timezone.now() - removal.ended_at > SETTLED_AFTER:
        deliveries.fail(error="endpoint deleted")  # results are not recorded any more
    while remove_deliveries(deliveries) or remove_events(list(pks[:EVENTS])):
        if time.monotonic() > until:
            return False
    with transaction.atomic():
        _remove_endpoints(profile, owner)
        if is_done := not _ended(profile, owner).exists():
            # Not a later one, of an owner that has come back and ended again.
            same = OwnerRemoval.objects.filter(pk=removal.pk)
            same.filter(ended_at=removal.ended_at).delete()
    return is_done


def _remove_endpoints(profile: str, owner: str) -> None:
    """Remove the ended endpoints without deliveries; locked, they get none from now on."""
    ended = _ended(profile, owner).select_for_update().order_by("pk")
    pks = list(ended.values_list("pk", flat=True))
    has_deliveries = Exists(Delivery.objects.filter(endpoint=OuterRef("pk")))
    empty = Endpoint.objects.filter(~has_deliveries, pk__in=pks)
    pks = list(empty.values_list("pk", flat=True))
    for rows in (
        EndpointSecret.objects.filter(endpoint__in=pks),
        EndpointQueue.objects.filter(endpoint__in=pks),
        Endpoint.objects.filter(pk__in=pks),
    ):
        delete_unreferenced(rows)


def _ended(profile: str, owner: str) -> Any:
    return Endpoint.objects.filter(
        profile=profile, owner=owner, deleted_at__isnull=False
    )


def _events(profile: str, owner: str) -> Any:
    return Event.objects.filter(profile=profile, owner=owner)


class StaticEndpointError(Exception):
    """A configuration declares an endpoint of this owner, and would create it again."""


@dataclass(frozen=True, slots=True)
class OwnerErasure:
    """What one product has of an owner: webhooks of a profile, and rows of its own by name."""

    profile: str
    owner: str
    rows: Mapping[str, QuerySet[Any]]

    def count(self) -> dict[str, int]:
        """Return how many rows of each kind there are."""
        events = _events(self.profile, self.owner)
        webhooks: dict[str, QuerySet[Any]] = {
            "endpoints": Endpoint.objects.filter(
                profile=self.profile, owner=self.owner
            ),
            "events": events,
            "deliveries": Delivery.objects.filter(event__in=events),
        }
        return {name: rows.count() for name, rows in {**webhooks, **self.rows}.items()}

    def check(self) -> None:
        """Raise StaticEndpointError if a configuration declares an endpoint of the owner."""
        static = Endpoint.objects.static(self.profile).filter(owner=self.owner)
        if names := ", ".join(str(endpoint.static_key) for endpoint in static):
            raise StaticEndpointError(names)

    def erase(self) -> None:
        """Remove everything. Safe to repeat after an interruption. Raises StaticEndpointError."""
        self.check()
        end_owner(profile=self.profile, owner=self.owner)
        for rows in self.rows.values():
            ids = rows.order_by("pk").values_list("pk", flat=True)
            while pks := list(ids[:BATCH]):
                rows.filter(pk__in=pks).delete()
        remove_owner(profile=self.profile, owner=self.owner)
