"""The leases of dispatchers: acquire, renew and release one, expire those of dead processes.

The id of a lease is the fencing token in every row that its dispatcher claims.
"""

from __future__ import annotations

import os
import random
import socket
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet

from webhooks_core.conf import webhook_settings
from webhooks_core.database.clock import clock
from webhooks_core.database.outages import is_outage
from webhooks_core.database.statements import fetch, statement
from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    EndpointQueue,
    EngineState,
)
from webhooks_core.network.errors import Outcome

LEASE_DURATION = timedelta(seconds=15)
INTERRUPTED = "interrupted: the worker died"
# After so many interruptions a delivery is a suspect: it is sent while no other suspect is.
SUSPECT_AFTER = 2
# A delivery that crashes its worker process must not do so without end.
MAX_LONE_INTERRUPTIONS = 5
LONGEST_PAUSE = timedelta(minutes=1)

log = structlog.stdlib.get_logger(__name__)


class LeaseLostError(Exception):
    """The lease has expired, and another process has freed what it claimed."""


def is_general(error: Exception) -> bool:
    """Return True for an error that is not about single rows."""
    return is_outage(error) or isinstance(error, LeaseLostError)


def acquire() -> DispatcherLease | None:
    """Acquire a lease in a free slot; return None if every slot is taken."""
    clock.measure()
    expire_dead()
    for slot in range(webhook_settings.DISPATCHERS):
        if lease := _acquire_slot(slot):
            # From now on commits need not wake a dispatcher: this one is live.
            EngineState.objects.update_or_create(pk=1, defaults={"woken_at": None})
            return lease
    return None


def _acquire_slot(slot: int) -> DispatcherLease | None:
    if DispatcherLease.objects.filter(slot=slot).exists():
        return None
    try:
        with transaction.atomic():
            return DispatcherLease.objects.create(
                slot=slot,
                host=socket.gethostname()[:255],
                pid=os.getpid(),
                expires_at=clock.in_sql() + LEASE_DURATION,
            )
    except IntegrityError:
        return None  # another process took the slot first


def renew(lease: DispatcherLease) -> None:
    """Extend a lease, and measure the clock. Raises LeaseLostError."""
    clock.measure()
    if not _open(lease).update(expires_at=clock.in_sql() + LEASE_DURATION):
        raise LeaseLostError


_LOCK = statement(
    "SELECT 1 FROM webhooks_core_dispatcherlease WHERE id = %s {for_update}"
)


def lock(lease: DispatcherLease) -> None:
    """Keep a lease from expiring until this transaction ends. Raises LeaseLostError.

    A lost lease claims nothing more: no process would free what it claimed. Not composed by the
    ORM: every record begins with it.
    """
    if not fetch(_LOCK, lease.pk):
        raise LeaseLostError


def release(lease: DispatcherLease) -> None:
    """End a lease, and free the queues and the deliveries that it still claims."""
    with transaction.atomic():
        _open(lease).delete()
        _free_claims(lease)


def expire_dead(*, spare: DispatcherLease | None = None) -> int:
    """End every lease that has expired, except `spare`; return how many."""
    rows = DispatcherLease.objects.filter(expires_at__lt=clock.in_sql())
    return sum(_expire(lease) for lease in rows.order_by("pk") if lease != spare)


def _expire(lease: DispatcherLease) -> bool:
    """End a lease that has expired; return False if it was renewed, or is locked.

    Its dispatcher is then frozen in a transaction, which PostgreSQL ends after some seconds.
    """
    with transaction.atomic():
        rows = _open(lease).filter(expires_at__lt=clock.in_sql())
        if not rows.select_for_update(skip_locked=True).values_list("pk").first():
            return False
        rows.delete()
        interrupted = _free_claims(lease)
    log.warning("dispatcher lease expired", lease=lease.pk, interrupted=interrupted)
    return True


def _open(lease: DispatcherLease) -> QuerySet[DispatcherLease]:
    return DispatcherLease.objects.filter(pk=lease.pk)


def _free_claims(lease: DispatcherLease) -> int:
    """Free the queues and deliveries of a lease; return how many attempts it interrupted."""
    now = clock.measure()
    interrupted = _interrupt(lease, now)
    queues = EndpointQueue.objects.filter(leased_by=lease.pk)
    queues.update(leased_by=None, next_due_at=now)
    return interrupted


def _interrupt(lease: DispatcherLease, now: datetime) -> int:
    """Record a lease's attempts without a result as interrupted, and make them due again.

    The only suspect among them may be the cause: after some such interruptions it fails.
    """
    claimed = Delivery.objects.claimed_by(lease.pk)
    rows = list(claimed.values_list("pk", "attempts", "claimed_at", "interruptions"))
    Attempt.objects.bulk_create(
        Attempt(
            delivery_id=pk,
            number=number,
            started_at=claimed_at or now,
            outcome=Outcome.INTERRUPTED,
            error=INTERRUPTED,
        )
        for pk, number, claimed_at, _ in rows
    )
    changes: dict[str, Any] = {
        "interruptions": F("interruptions") + 1,
        "claimed_by": None,
        "last_error": INTERRUPTED,
    }
    suspects = [pk for pk, *_, interruptions in rows if interruptions >= SUSPECT_AFTER]
    if len(suspects) == 1:
        only = claimed.filter(pk=suspects[0])
        only.update(lone_interruptions=F("lone_interruptions") + 1)
        only.filter(lone_interruptions__gte=MAX_LONE_INTERRUPTIONS).update(
            status=Delivery.Status.FAILED, next_attempt_at=None, **changes
        )
    for interruptions in {row[-1] for row in rows}:
        pause = pause_after_interruption(interruptions + 1)
        at = now + pause * random.uniform(1, 1.5)  # noqa: S311 - so that suspects part
        same = claimed.filter(interruptions=interruptions)
        same.update(next_attempt_at=at, **changes)
    return len(rows)


def pause_after_interruption(interruptions: int) -> timedelta:
    """Return the pause after so many: the first attempt is repeated at once, a suspect later."""
    if interruptions < SUSPECT_AFTER:
        return timedelta(0)
    return min(timedelta(seconds=2 ** (interruptions - 1)), LONGEST_PAUSE)
