"""The sweep: finds what a crash left behind, and ends what is old. What it repairs is counted."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta

import structlog
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from webhooks_core import profiles
from webhooks_core.conf import webhook_settings
from webhooks_core.dispatch import leases
from webhooks_core.dispatch.retention import remove_old
from webhooks_core.models import Delivery, Endpoint, EndpointQueue, EngineState, Event

EVERY = timedelta(seconds=20)
# Of a minute, between two scheduled sweeps.
RETENTION_S = 40.0
# A commit and its call are two steps: a lane is forgotten only when the second is overdue.
GRACE = timedelta(seconds=5)

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What one sweep did: `buried` and `rung` are repairs, `removed` is retention."""

    expired_leases: int = 0
    repaired_queues: int = 0
    removed: int = 0

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


def sweep(*, retention_s: float = RETENTION_S) -> SweepReport:
    """Bury the dead, mend what a clock or a crash did to due times, and remove what is old.

    The last for at most `retention_s` seconds, and only while nobody waits for a worker.
    """
    now = timezone.now()
    before = now - timedelta(days=webhook_settings.RETENTION_DAYS)
    repair_due_times(now)
    swept = SweepReport(
        expired_leases=leases.expire_dead(),
        repaired_queues=repair_queues(now),
        removed=remove_old(before, for_s=retention_s) if retention_s else 0,
    )
    if swept.expired_leases or swept.repaired_queues:
        log.warning(
            "sweep repaired", buried=swept.expired_leases, rung=swept.repaired_queues
        )
    return swept


def is_due() -> bool:
    """Tell whether nobody has swept for a while; cheaper than to try."""
    return EngineState.objects.filter(_stale(timezone.now())).exists()


def _stale(now: datetime) -> Q:
    never, ahead = Q(swept_at=None), Q(swept_at__gt=now + EVERY)
    return never | Q(swept_at__lt=now - EVERY) | ahead


def sweep_if_due() -> bool:
    """Sweep unless somebody did a moment ago; tell whether anything was done.

    A shift has no time to remove what is old.
    """
    now = timezone.now()
    if not EngineState.objects.filter(_stale(now)).update(swept_at=now):
        return False
    return bool(sweep(retention_s=0))


def sweep_as_scheduled() -> SweepReport:
    """Sweep whenever the last one was, and leave the time as a worker's sign of life."""
    EngineState.objects.update_or_create(pk=1, defaults={"swept_at": timezone.now()})
    return sweep()


def repair_queues(now: datetime) -> int:
    """Ring free lanes that let their earliest delivery pass; return how many.

    A publisher that died between its commit and its call leaves such a lane. What waits for
    an endpoint that was deleted meanwhile is found too: the drain ends it.
    """
    overdue = (
        _attended()
        .annotate(head=Delivery.objects.next_due())
        .filter(pk=OuterRef("pk"), head__lt=now - GRACE)
    )
    forgotten = EndpointQueue.objects.filter(
        Q(next_due_at=None) | Q(next_due_at__gt=now), Exists(overdue), leased_by=None
    )
    rung = EndpointQueue.objects.mark_due(
        list(forgotten.values_list("pk", flat=True)), at=now
    )
    if rung:
        EngineState.objects.filter(pk=1).update(
            repaired_queues=F("repaired_queues") + rung
        )
    return rung


def repair_due_times(now: datetime) -> None:
    """Make due what was due when it was published, in a future that is yet to come again.

    The clock was set back since, or another machine's is ahead of ours.
    """
    early = Event.objects.filter(created_at__gt=now + GRACE)
    untried = Delivery.objects.waiting().filter(
        event__in=early, attempts=F("interruptions"), next_attempt_at__gt=now
    )
    if lanes := set(untried.values_list("endpoint", flat=True)):
        untried.update(next_attempt_at=now)
        EndpointQueue.objects.mark_due(list(lanes), at=now)


def _attended() -> QuerySet[Endpoint]:
    """Endpoints whose waiting deliveries a drain would send or end."""
    enabled, ending = Q(pk=None), Q(deleted_at__isnull=False)
    for profile in profiles.registered():
        if profile.enabled:
            enabled |= Q(profile=profile.name)
        if profile.inactive_fails_pending:
            ending |= Q(profile=profile.name, active=False)
    receiving = Endpoint.objects.receiving().filter(enabled)
    return receiving | Endpoint.objects.filter(ending)
