"""Gateway keys: only their hashes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from django.db import models
from django.db.models import Q
from django.utils import timezone

USE_IS_WRITTEN_EVERY = timedelta(hours=1)


class GatewayKeyQuerySet(models.QuerySet["GatewayKey"]):
    def live(self, now: datetime) -> Self:
        """Those that open the door: neither revoked nor expired."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)

    def revoke(self, now: datetime) -> int:
        """Revoke these; return how many were not revoked before."""
        return self.filter(revoked_at=None).update(revoked_at=now)


class GatewayKey(models.Model):
    """A bearer key of one principal of one tenant; `shown` tells keys apart in lists."""

    tenant = models.CharField(max_length=128)
    principal = models.CharField(max_length=128)
    name = models.CharField(max_length=100, blank=True)
    shown = models.CharField("key", max_length=24)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    objects = GatewayKeyQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["tenant", "principal"], name="key_of_tenant")]

    def __str__(self) -> str:
        return self.shown

    def use(self, now: datetime) -> bool:
        """Note a use, at most once an hour; True if this call wrote it."""
        stale = now - USE_IS_WRITTEN_EVERY
        if self.last_used_at is not None and self.last_used_at > stale:
            return False
        unnoted = Q(last_used_at=None) | Q(last_used_at__lte=stale)
        rows = GatewayKey.objects.filter(unnoted, pk=self.pk)
        return rows.update(last_used_at=now) == 1

    def state(self, now: datetime) -> str:
        """Return `live`, `revoked` or `expired`."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= now:
            return "expired"
        return "live"
