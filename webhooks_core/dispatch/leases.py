"""Shifts: who may take work, for how long, and what is left when one dies."""

from __future__ import annotations

import os
import socket
from datetime import datetime, timedelta

import structlog
from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone

from webhooks_core.conf import webhook_settings
from webhooks_core.dispatch.decisions import MAX_INTERRUPTIONS
from webhooks_core.dispatch.rate_limit import SECOND
from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    EndpointQueue,
    EngineState,
)
from webhooks_core.outcomes import Outcome
from webhooks_core.worker import processes

LEASE = timedelta(seconds=15)
RECENTLY = timedelta(minutes=5)
INTERRUPTED = "interrupted: the worker died"

log = structlog.stdlib.get_logger(__name__)


class LeaseLostError(Exception):
    """The lease of this shift ran out, and somebody has buried it."""


def acquire() -> DispatcherLease | None:
    """Begin a shift in a free slot; None when every slot is taken by a living one."""
    expire_dead()
    for slot in range(webhook_settings.DISPATCHERS):
        if shift := _take(slot):
            # From here on commits need not call: this shift looks by itself.
            EngineState.objects.update_or_create(pk=1, defaults={"woken_at": None})
            return shift
    return None


def _take(slot: int) -> DispatcherLease | None:
    if DispatcherLease.objects.filter(slot=slot).exists():
        return None
    try:
        with transaction.atomic():
            return DispatcherLease.objects.create(
                slot=slot,
                host=socket.gethostname()[:255],
                pid=os.getpid(),
                boot_id=processes.boot_id(),
                expires_at=timezone.now() + LEASE,
                offline_since=_inherited(),
            )
    except IntegrityError:
        return None  # another worker was quicker


def _inherited() -> datetime | None:
    """Return since when the last shift of this machine knew that there is no network."""
    if not (machine := processes.boot_id()):
        return None
    recent = Q(ended_at=None) | Q(ended_at__gt=timezone.now() - RECENTLY)
    last = (
        DispatcherLease.objects.filter(recent, boot_id=machine).order_by("-pk").first()
    )
    return last.offline_since if last else None


def set_offline_since(
    shift: DispatcherLease, *, offline_since: datetime | None
) -> None:
    """Let operators, and the next shift of this machine, know whether there is a network."""
    DispatcherLease.objects.filter(pk=shift.pk).update(offline_since=offline_since)


def renew(shift: DispatcherLease) -> bool:
    """Prolong the lease; False when somebody has already buried this shift."""
    until = timezone.now() + LEASE
    return (
        DispatcherLease.objects.filter(pk=shift.pk, ended_at=None).update(
            expires_at=until
        )
        == 1
    )


def lock(shift: DispatcherLease) -> None:
    """Keep a shift from being buried until this transaction ends. Raises LostError.

    Whoever is buried takes nothing more: nobody would look for what it holds.
    """
    own = DispatcherLease.objects.select_for_update().filter(pk=shift.pk, ended_at=None)
    if not own.values_list("pk").first():
        raise LeaseLostError


def release_slot(shift: DispatcherLease) -> None:
    """Let a successor take new work while this shift waits for its last answers."""
    DispatcherLease.objects.filter(pk=shift.pk).update(slot=None)


def release(shift: DispatcherLease, *, attempts: int) -> None:
    """End a shift, and free whatever it still holds.

    That is nothing, unless the database went away and did not confirm a commit.
    """
    now = timezone.now()
    with transaction.atomic():
        DispatcherLease.objects.filter(pk=shift.pk, ended_at=None).update(
            slot=None, ended_at=now, attempts=attempts
        )
        _free(shift, now)
        if not attempts and shift.offline_since is None:
            # It waited in vain, as one does three times a minute.
            idle = DispatcherLease.objects.filter(
                pk=shift.pk, attempts=0, offline_since=None
            )
            idle.delete()


def expire_dead() -> int:
    """End every shift that died or whose lease ran out, and free what it held.

    Returns how many. A shift of this machine need not be waited for: its process is gone.
    """
    now = timezone.now()
    # A lease further ahead than we ever give one was written before the clock was set back.
    expired = Q(expires_at__lt=now) | Q(expires_at__gt=now + 2 * LEASE)
    dead = expired | Q(pk__in=_orphaned())
    return sum(
        _bury(shift, dead, now)
        for shift in DispatcherLease.objects.filter(dead, ended_at=None).order_by("pk")
    )


def _orphaned() -> list[int]:
    """Return the open shifts of processes that were here and are gone."""
    if not (machine := processes.boot_id()):
        return []
    here = DispatcherLease.objects.filter(boot_id=machine, ended_at=None)
    return [
        pk for pk, pid in here.values_list("pk", "pid") if not processes.is_alive(pid)
    ]


def _bury(shift: DispatcherLease, dead: Q, now: datetime) -> bool:
    with transaction.atomic():
        won = DispatcherLease.objects.filter(dead, pk=shift.pk, ended_at=None).update(
            slot=None, ended_at=now
        )
        if not won:
            return False
        interrupted = _free(shift, now)
        EngineState.objects.filter(pk=1).update(expired_leases=F("expired_leases") + 1)
    log.warning("dispatcher lease expired", lease=shift.pk, interrupted=interrupted)
    return True


def _free(shift: DispatcherLease, now: datetime) -> int:
    """Free what a shift holds; return how many attempts it saw no end of."""
    interrupted = _interrupt(shift, now)
    lanes = EndpointQueue.objects.filter(leased_by=shift.pk)
    # What it sent a moment ago, nobody knows: no second may see more than the rate.
    lanes.filter(endpoint__rate_per_second__isnull=False).update(
        not_before=now + SECOND
    )
    lanes.update(leased_by=None, next_due_at=now)
    return interrupted


def _interrupt(shift: DispatcherLease, now: datetime) -> int:
    """Record the attempts of which a shift saw no end, and make them due again."""
    claimed = Delivery.objects.claimed_by(shift.pk)
    cut = list(claimed.values_list("pk", "attempts"))
    if not cut:
        return 0
    Attempt.objects.bulk_create(
        Attempt(
            delivery_id=pk,
            number=number,
            started_at=shift.started_at,
            outcome=Outcome.INTERRUPTED,
            error=INTERRUPTED,
        )
        for pk, number in cut
    )
    claimed.filter(interruptions__gte=MAX_INTERRUPTIONS - 1).update(
        status=Delivery.Status.FAILED,
        interruptions=F("interruptions") + 1,
        next_attempt_at=None,
        claimed_by=None,
        last_error=INTERRUPTED,
    )
    claimed.update(
        interruptions=F("interruptions") + 1,
        next_attempt_at=now,
        claimed_by=None,
        last_error=INTERRUPTED,
    )
    return len(cut)
