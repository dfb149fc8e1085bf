"""The leases of dispatchers, and the state of the engine."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q
from django.utils import timezone

from webhooks_core.database.clock import clock


class DispatcherLeaseQuerySet(models.QuerySet["DispatcherLease"]):
    def live(self) -> Self:
        """Return the leases of dispatchers that take new work."""
        return self.filter(slot__isnull=False, expires_at__gt=clock.in_sql())


class DispatcherLease(models.Model):
    """One run of a dispatcher. Its id is the fencing token in every row that it claims.

    `slot` is set while the dispatcher takes new work; one that only waits for its last results
    has left the slot to its successor. `expires_at` passes only if the dispatcher died or hangs.
    """

    slot = models.PositiveSmallIntegerField(null=True, unique=True)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    # Where the pid is valid: one boot of one kernel, and a namespace in it.
    boot_id = models.CharField(max_length=128, blank=True)
    # The machine's address as PostgreSQL sees it: clones of one machine differ in it.
    address = models.CharField(max_length=45, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    # Since when it postpones attempts because its machine has no network.
    offline_since = models.DateTimeField(null=True)

    objects = DispatcherLeaseQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["id"], condition=Q(ended_at=None), name="lease_open")
        ]

    def __str__(self) -> str:
        return f"lease {self.pk}"


class OwnerRemoval(models.Model):
    """An owner that has ended, for example with its account, until its rows are removed."""

    profile = models.CharField(max_length=32)
    owner = models.CharField(max_length=128)
    ended_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["profile", "owner"], name="removal_once")
        ]

    def __str__(self) -> str:
        return f"removal {self.pk}"


class EngineState(models.Model):
    """One row: `woken_at` is when a dispatcher was last woken, so that a burst wakes only one.

    `expired_leases` and `repaired_queues` count all repairs ever made. `retention_at` and
    `retention_event` are the creation time and the id of the last event that retention has
    checked; null at the beginning of its cycle.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    woken_at = models.DateTimeField(null=True)
    swept_at = models.DateTimeField(null=True)
    expired_leases = models.PositiveBigIntegerField(default=0)
    repaired_queues = models.PositiveBigIntegerField(default=0)
    retention_at = models.DateTimeField(null=True)
    retention_event = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return "engine state"
