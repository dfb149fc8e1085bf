"""The leases of dispatchers: acquire, renew and release one, expire those of dead processes."""

from __future__ import annotations

import os
import socket
from datetime import datetime, timedelta

import structlog
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import F, Q, QuerySet

from webhooks_core.conf import webhook_settings
from webhooks_core.database import limits
from webhooks_core.database.clock import clock
from webhooks_core.database.outages import is_outage
from webhooks_core.database.statements import fetch
from webhooks_core.dispatch.decisions import (
    MAX_LONE_INTERRUPTIONS,
    pause_after_interruption,
)
from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    EndpointQueue,
    EngineState,
)
from webhooks_core.network.outcomes import Outcome
from webhooks_core.worker import processes

LEASE_DURATION = timedelta(seconds=15)
RECENTLY = timedelta(minutes=5)
INTERRUPTED = "interrupted: the worker died"

log = structlog.stdlib.get_logger(__name__)


class LeaseLostError(Exception):
    """The lease has expired, and another process has freed what it claimed."""


def is_general(error: Exception) -> bool:
    """Return True for an error that is not about single rows."""
    return is_outage(error) or isinstance(error, LeaseLostError)


def is_dispatcher_wanted() -> bool:
    """Return False if every slot is taken, or the resident dispatcher leaves nothing for another.

    Two queries, for tasks that were queued long ago: thousands of them must not hold up others.
    """
    live = DispatcherLease.objects.live().values_list("slot", "pid", "boot_id")
    slots = {
        slot
        for slot, pid, boot_id in live
        if boot_id != processes.boot_id() or processes.is_alive(pid)
    }
    if 0 not in slots:
        return True
    due = EndpointQueue.objects.due(clock.in_sql(), lease=0)
    return len(slots) < webhook_settings.DISPATCHERS and due.exists()


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
            limits.limit_idle()
            return DispatcherLease.objects.create(
                slot=slot,
                host=socket.gethostname()[:255],
                pid=os.getpid(),
                boot_id=processes.boot_id(),
                address=limits.client_address(),
                started_at=clock.in_sql(),
                expires_at=clock.in_sql() + LEASE_DURATION,
                offline_since=_last_offline_since(),
            )
    except IntegrityError:
        return None  # another process took the slot first


def _last_offline_since() -> datetime | None:
    """Return the `offline_since` of the last dispatcher of this machine, if it is recent."""
    if not (boot_id := processes.boot_id()):
        return None
    recent = Q(ended_at=None) | Q(ended_at__gt=clock.in_sql() - RECENTLY)
    leases = DispatcherLease.objects.filter(recent, boot_id=boot_id)
    last = leases.order_by("-pk").first()
    return last.offline_since if last else None


def set_offline_since(lease: DispatcherLease, since: datetime | None) -> None:
    """Store, for operators and the next dispatcher, whether this machine has a network."""
    DispatcherLease.objects.filter(pk=lease.pk).update(offline_since=since)


def renew(lease: DispatcherLease) -> bool:
    """Extend a lease, and measure the clock; return False if the lease is lost."""
    clock.measure()
    return _open(lease).update(expires_at=clock.in_sql() + LEASE_DURATION) == 1


_IS_OPEN = (
    "SELECT 1 FROM webhooks_core_dispatcherlease WHERE id = %s AND ended_at IS NULL"
)


def lock(lease: DispatcherLease) -> None:
    """Keep a lease from expiring until this transaction ends. Raises LeaseLostError.

    A lost lease claims nothing more: no process would free what it claimed.
    """
    if connection.vendor == "postgresql":
        is_open = limits.lock_lease(lease.pk)
    else:
        is_open = bool(fetch(_IS_OPEN, lease.pk))
    if not is_open:
        raise LeaseLostError


def lock_after_outage(lease: DispatcherLease) -> None:
    """As lock(), on a new connection: this machine may be a clone of the one that got the lease."""
    lock(lease)
    if lease.address != limits.client_address():
        raise LeaseLostError


def release_slot(lease: DispatcherLease) -> None:
    """Let a successor take new work while this dispatcher waits for its last results."""
    DispatcherLease.objects.filter(pk=lease.pk).update(slot=None)


def release(lease: DispatcherLease, *, attempts: int) -> None:
    """End a lease, and free what it still claims.

    That is nothing, unless the database failed and did not confirm a commit.
    """
    with transaction.atomic():
        limits.limit_idle()
        _open(lease).update(slot=None, ended_at=clock.in_sql(), attempts=attempts)
        _free_claims(lease)
        if not attempts and lease.offline_since is None:
            # Three times a minute a resident dispatcher ends without an attempt: keep no row.
            idle = DispatcherLease.objects.filter(
                pk=lease.pk, attempts=0, offline_since=None
            )
            idle.delete()


def expire_dead(*, spare: DispatcherLease | None = None) -> int:
    """End every lease that expired or whose process ended, except `spare`; return how many.

    The death of a process of this machine is known before its lease expires.
    """
    now = clock.in_sql()
    # A time so far ahead was written before the clock was set back.
    expired = Q(expires_at__lt=now) | Q(expires_at__gt=now + 2 * LEASE_DURATION)
    dead = expired | Q(pk__in=_orphaned())
    leases = DispatcherLease.objects.filter(dead, ended_at=None).order_by("pk")
    return sum(_expire(lease, dead) for lease in leases if lease != spare)


def _orphaned() -> list[int]:
    """Return the ids of open leases whose processes ran on this machine and have ended.

    Clones of one snapshot have one boot id. Only the address tells that a process is another's.
    """
    if not (boot_id := processes.boot_id()):
        return []
    local = DispatcherLease.objects.filter(boot_id=boot_id, ended_at=None)
    gone = [
        (pk, address)
        for pk, pid, address in local.values_list("pk", "pid", "address")
        if not processes.is_alive(pid)
    ]
    own = limits.client_address() if gone else ""
    return [pk for pk, address in gone if address == own]


def _expire(lease: DispatcherLease, dead: Q) -> bool:
    """End a dead lease; return False if it is not dead, or its rows are locked for now."""
    try:
        with transaction.atomic():
            limits.limit_idle()
            limits.limit_lock_waits()
            if not _end_dead(lease, dead):
                return False
            interrupted = _free_claims(lease)
            state = EngineState.objects.filter(pk=1)
            state.update(expired_leases=F("expired_leases") + 1)
    except OperationalError as error:
        if not limits.is_lock_timeout(error):
            raise
        log.warning("dispatcher lease not expired: rows are locked", lease=lease.pk)
        return False
    log.warning("dispatcher lease expired", lease=lease.pk, interrupted=interrupted)
    return True


def _end_dead(lease: DispatcherLease, dead: Q) -> bool:
    rows = _open(lease).filter(dead)
    if rows.select_for_update(skip_locked=True).values_list("pk").first():
        return rows.update(slot=None, ended_at=clock.in_sql()) == 1
    # Locked: its dispatcher is frozen in a transaction. The lease expires when that has ended.
    if rows.exists():
        limits.terminate(lease.pk)
    return False


def _open(lease: DispatcherLease) -> QuerySet[DispatcherLease]:
    return DispatcherLease.objects.filter(pk=lease.pk, ended_at=None)


def _free_claims(lease: DispatcherLease) -> int:
    """Free the queues and deliveries of a lease; return how many attempts it interrupted."""
    now = clock.measure()
    interrupted = _interrupt(lease, now)
    queues = EndpointQueue.objects.filter(leased_by=lease.pk)
    queues.update(leased_by=None, next_due_at=now)
    return interrupted


def _interrupt(lease: DispatcherLease, now: datetime) -> int:
    """Record a lease's attempts without a result as interrupted, and make them due again.

    `lone_interruptions` counts only an attempt that was interrupted alone. Of several, any may be
    the cause.
    """
    claimed = Delivery.objects.claimed_by(lease.pk)
    rows = list(claimed.values_list("pk", "attempts", "claimed_at", "interruptions"))
    if not rows:
        return 0
    is_alone = len(rows) == 1
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
    changes = {
        "interruptions": F("interruptions") + 1,
        "lone_interruptions": F("lone_interruptions") + int(is_alone),
        "claimed_by": None,
        "last_error": INTERRUPTED,
    }
    if is_alone:
        claimed.filter(lone_interruptions__gte=MAX_LONE_INTERRUPTIONS - 1).update(
            status=Delivery.Status.FAILED, next_attempt_at=None, **changes
        )
    for interruptions in {row[-1] for row in rows}:
        at = now + pause_after_interruption(interruptions + 1)
        same = claimed.filter(interruptions=interruptions)
        same.update(next_attempt_at=at, **changes)
    return len(rows)
