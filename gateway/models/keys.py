"""Gateway keys, stored as hashes."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Q

from webhooks_core.models.bearer import BearerQuerySet, BearerToken


class GatewayKeyQuerySet(BearerQuerySet["GatewayKey"]):
    def live(self, now: datetime) -> Self:
        """Return the keys that are neither revoked nor expired."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)


class GatewayKey(BearerToken):
    """A bearer key of one principal of one tenant."""

    tenant = models.CharField(max_length=128)
    principal = models.CharField(max_length=128)
    display_prefix = models.CharField("key", max_length=24)
    expires_at = models.DateTimeField(null=True, blank=True)

    objects = GatewayKeyQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["tenant", "principal"], name="key_of_tenant")]

    def state(self, now: datetime) -> str:
        """Return `live`, `revoked` or `expired`."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= now:
            return "expired"
        return "live"
