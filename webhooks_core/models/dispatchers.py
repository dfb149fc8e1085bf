"""The leases of dispatchers, and the state of the engine."""

from __future__ import annotations

from typing import Self

from django.db import models

from webhooks_core.database.clock import clock


class DispatcherLeaseQuerySet(models.QuerySet["DispatcherLease"]):
    def live(self) -> Self:
        """Return the leases of dispatchers that work."""
        return self.filter(expires_at__gt=clock.in_sql())


class DispatcherLease(models.Model):
    """One run of a dispatcher, until it has ended.

    Its id is the fencing token in every row that it claims: no id is given twice. `expires_at`
    passes only if the dispatcher died or hangs.
    """

    slot = models.PositiveSmallIntegerField(unique=True)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    expires_at = models.DateTimeField()

    objects = DispatcherLeaseQuerySet.as_manager()

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

    `swept_at` is when a worker last swept.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    woken_at = models.DateTimeField(null=True)
    swept_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return "engine state"
