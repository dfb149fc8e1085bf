"""The sweep: repairs what a crash left behind, counts the repairs, and applies retention."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

import structlog
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from webhooks_core import notices, profiles
from webhooks_core.conf import webhook_settings
from webhooks_core.database.clock import clock
from webhooks_core.dispatch import leases
from webhooks_core.models import Delivery, Endpoint, EndpointQueue, EngineState, Event
from webhooks_core.upkeep.removal import remove_ended_owners
from webhooks_core.upkeep.retention import remove_old

EVERY = timedelta(seconds=20)
# Of the minute between two scheduled sweeps.
RETENTION_S = 40.0
# A publisher notifies after its commit: a queue that is overdue for less than this may still be
# notified, and needs no repair.
GRACE = timedelta(seconds=5)

log = structlog.stdlib.get_logger(__name__)


class SweepReport(NamedTuple):
    """What one sweep did: the first two are repairs, `removed` is retention."""

    expired_leases: int = 0
    repaired_queues: int = 0
    removed: int = 0

    def __bool__(self) -> bool:
        return any(self)


def sweep(*, retention_s: float = RETENTION_S) -> SweepReport:
    """Expire dead leases, repair due times, and remove what is old.

    Removes for at most `retention_s` seconds, and only while no work waits for a dispatcher.
    """
    now = clock.measure()
    before = now - timedelta(days=webhook_settings.RETENTION_DAYS)
    repair_due_times(now)
    if retention_s:
        remove_ended_owners(for_s=retention_s)
    report = SweepReport(
        expired_leases=leases.expire_dead(),
        repaired_queues=repair_queues(now),
        removed=remove_old(before, for_s=retention_s) if retention_s else 0,
    )
    if report.expired_leases or report.repaired_queues:
        log.warning(
            "sweep repaired",
            expired_leases=report.expired_leases,
            repaired_queues=report.repaired_queues,
        )
    notices.send_recovered()
    return report


def is_due() -> bool:
    """Return True if the last sweep is too long ago; cheaper than sweep_if_due()."""
    return EngineState.objects.filter(_overdue(clock.in_sql())).exists()


def _overdue(now: Any) -> Q:
    never, ahead = Q(swept_at=None), Q(swept_at__gt=now + EVERY)
    return never | Q(swept_at__lt=now - EVERY) | ahead


def sweep_if_due() -> bool:
    """Sweep, without retention, if the last sweep is too long ago; return True if it did work."""
    now = clock.in_sql()
    if not EngineState.objects.filter(_overdue(now)).update(swept_at=now):
        return False
    return bool(sweep(retention_s=0))


def sweep_as_scheduled() -> SweepReport:
    """Sweep, at any time since the last one; the stored time is the worker's heartbeat."""
    EngineState.objects.update_or_create(pk=1, defaults={"swept_at": clock.in_sql()})
    return sweep()


def repair_queues(now: datetime) -> int:
    """Make free queues due whose earliest delivery is overdue; return how many.

    A publisher that died between its commit and its notification leaves such a queue. What waits
    for a deleted endpoint is found too: the claim fails it. What waits for an endpoint that hangs
    waits until its next probe.
    """
    overdue = (
        _served()
        .annotate(next_due=Delivery.objects.next_due())
        .filter(pk=OuterRef("pk"), next_due__lt=now - GRACE)
        .exclude(_awaiting_probe(now))
    )
    stale = EndpointQueue.objects.filter(
        Q(next_due_at=None) | Q(next_due_at__gt=now), Exists(overdue), leased_by=None
    )
    pks = list(stale.values_list("pk", flat=True))
    repaired = EndpointQueue.objects.mark_due(pks, at=now)
    if repaired:
        EngineState.objects.filter(pk=1).update(
            repaired_queues=F("repaired_queues") + repaired
        )
    return repaired


def repair_due_times(now: datetime) -> None:
    """Make due what was due when it was published, at a time that now lies in the future.

    Either the clock was set back since, or the clock of another machine is ahead.
    """
    early = Event.objects.filter(created_at__gt=now + GRACE)
    untried = Delivery.objects.waiting().filter(
        event__in=early, attempts=F("interruptions"), next_attempt_at__gt=now
    )
    if queues := set(untried.values_list("endpoint", flat=True)):
        untried.update(next_attempt_at=now)
        EndpointQueue.objects.mark_due(list(queues), at=now)


def _awaiting_probe(now: datetime) -> Q:
    """As `Endpoint.probe_at`, but for every endpoint by the longest pause of its profile."""
    awaiting = Q(pk=None)
    for profile in profiles.registered():
        tried_since = now - GRACE - timedelta(seconds=profile.retry.longest_probe_pause)
        awaiting |= Q(profile=profile.name, last_attempt_at__gt=tried_since)
    return awaiting & Q(hanging_since__isnull=False)


def _served() -> QuerySet[Endpoint]:
    """Return the endpoints whose waiting deliveries a dispatcher would send or fail."""
    enabled, ending = Q(pk=None), Q(deleted_at__isnull=False)
    for profile in profiles.registered():
        if profile.enabled:
            enabled |= Q(profile=profile.name)
        if profile.inactive_fails_pending:
            ending |= Q(profile=profile.name, active=False)
    receiving = Endpoint.objects.receiving().filter(enabled)
    return receiving | Endpoint.objects.filter(ending)
