"""The sweep: finds what a crash left behind, and ends what is old. What it repairs is counted."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from webhooks_core import profiles
from webhooks_core.dispatch import shifts
from webhooks_core.models import Bell, Delivery, Endpoint, Event, Lane, Shift

EVERY = timedelta(seconds=20)
BATCH = 500
# A commit and its call are two steps: a lane is forgotten only when the second is overdue.
GRACE = timedelta(seconds=5)

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did: `buried` and `rung` are repairs, `removed` is retention."""

    buried: int = 0
    rung: int = 0
    removed: int = 0

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


def sweep() -> Swept:
    """Bury dead shifts, ring lanes that missed their work, and remove what is old."""
    now = timezone.now()
    swept = Swept(
        buried=shifts.bury_dead(),
        rung=ring_forgotten(now),
        removed=remove_old(now - timedelta(days=settings.WEBHOOK_RETENTION_DAYS)),
    )
    if swept.buried or swept.rung:
        log.warning("sweep repaired", buried=swept.buried, rung=swept.rung)
    return swept


def sweep_if_due() -> bool:
    """Sweep unless somebody did a moment ago; tell whether anything was done."""
    now = timezone.now()
    stale = Q(swept_at=None) | Q(swept_at__lt=now - EVERY) | Q(swept_at__gt=now + EVERY)
    if not Bell.objects.filter(stale).update(swept_at=now):
        return False
    return bool(sweep())


def sweep_as_scheduled() -> Swept:
    """Sweep whenever the last one was, and leave the time as a worker's sign of life."""
    Bell.objects.update_or_create(pk=1, defaults={"swept_at": timezone.now()})
    return sweep()


def ring_forgotten(now: datetime) -> int:
    """Ring free lanes that let their earliest delivery pass; return how many.

    A publisher that died between its commit and its call leaves such a lane. What waits for
    an endpoint that was deleted meanwhile is found too: the drain ends it.
    """
    head = (
        Delivery.objects.waiting()
        .filter(endpoint=OuterRef("pk"), next_attempt_at__lt=now - GRACE)
        .order_by("next_attempt_at")
    )
    forgotten = Lane.objects.filter(
        Q(next_due_at=None) | Q(next_due_at__gt=now),
        Exists(_attended().filter(pk=OuterRef("pk"))),
        Exists(head),
        owner=None,
    )
    rung = Lane.objects.ring(list(forgotten.values_list("pk", flat=True)), at=now)
    if rung:
        Bell.objects.filter(pk=1).update(rung=F("rung") + rung)
    return rung


def _attended() -> QuerySet[Endpoint]:
    """Endpoints whose waiting deliveries a drain would send or end."""
    enabled, ending = Q(pk=None), Q(deleted_at__isnull=False)
    for profile in profiles.registered():
        if profile.enabled:
            enabled |= Q(profile=profile.name)
        if profile.inactive_ends_waiting:
            ending |= Q(profile=profile.name, active=False)
    receiving = Endpoint.objects.receiving().filter(enabled)
    return receiving | Endpoint.objects.filter(ending)


def remove_old(before: datetime) -> int:
    """Remove a batch of events that nobody waits for, with all that hangs on them.

    What waits for a subscribed endpoint is never removed, whatever its age; nor is what is
    being tried.
    """
    awaited = Delivery.objects.filter(
        Q(endpoint__in=Endpoint.objects.subscribed()) | Q(claim__isnull=False),
        event=OuterRef("pk"),
        status=Delivery.Status.PENDING,
    )
    with transaction.atomic():
        old = Event.objects.filter(~Exists(awaited), created_at__lt=before)
        pks = list(old.order_by("created_at").values_list("pk", flat=True)[:BATCH])
        Event.objects.filter(pk__in=pks).delete()
        Shift.objects.filter(ended_at__lt=before).delete()
    return len(pks)
