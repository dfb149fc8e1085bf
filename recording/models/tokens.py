"""Personal API tokens: only their hashes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

INACTIVITY = timedelta(days=90)
USE_IS_WRITTEN_EVERY = timedelta(hours=1)


class PersonalTokenQuerySet(models.QuerySet["PersonalToken"]):
    def live(self, now: datetime) -> Self:
        """Those that open the door: not revoked, expired or 90 days unused, user active."""
        used = Q(last_used_at__gt=now - INACTIVITY)
        young = Q(last_used_at=None, created_at__gt=now - INACTIVITY)
        return self.filter(
            used | young,
            revoked_at=None,
            expires_at__gt=now,
            user__is_active=True,
        )

    def dead(self, now: datetime) -> Self:
        """Those that can never work again, whatever becomes of their user."""
        unused = Q(last_used_at__lte=now - INACTIVITY) | Q(
            last_used_at=None, created_at__lte=now - INACTIVITY
        )
        return self.filter(
            unused | Q(revoked_at__isnull=False) | Q(expires_at__lte=now)
        )

    def revoke(self, now: datetime) -> int:
        """Revoke these; return how many were not revoked before."""
        return self.filter(revoked_at=None).update(revoked_at=now)


class PersonalToken(models.Model):
    """A token that its user made on the command line; `shown` tells tokens apart in lists."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    name = models.CharField(max_length=100, blank=True)
    shown = models.CharField("token", max_length=24)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    objects = PersonalTokenQuerySet.as_manager()

    def __str__(self) -> str:
        return self.shown

    def use(self, now: datetime) -> bool:
        """Note a use, at most once an hour; True if this call wrote it."""
        stale = now - USE_IS_WRITTEN_EVERY
        if self.last_used_at is not None and self.last_used_at > stale:
            return False
        unnoted = Q(last_used_at=None) | Q(last_used_at__lte=stale)
        rows = PersonalToken.objects.filter(unnoted, pk=self.pk)
        return rows.update(last_used_at=now) == 1

    def state(self, now: datetime) -> str:
        """Return `live`, `revoked`, `expired` or `unused` (for 90 days)."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at <= now:
            return "expired"
        active = (self.last_used_at or self.created_at) > now - INACTIVITY
        return "live" if active else "unused"
