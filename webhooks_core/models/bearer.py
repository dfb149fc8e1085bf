"""The base of the tables of bearer tokens: only the hash of a token, and when it was used."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

WRITE_USE_EVERY = timedelta(hours=1)


class BearerToken(models.Model):
    """A bearer token; `display_prefix`, its first characters, distinguishes tokens in lists."""

    name = models.CharField(max_length=100, blank=True)
    display_prefix = models.CharField(max_length=24)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.display_prefix

    def use(self, now: datetime) -> bool:
        """Record a use, at most once an hour; return True if this call wrote it."""
        stale = now - WRITE_USE_EVERY
        if self.last_used_at is not None and self.last_used_at > stale:
            return False
        is_stale = Q(last_used_at=None) | Q(last_used_at__lte=stale)
        manager = type(self)._default_manager  # noqa: SLF001 - public by use
        return manager.filter(is_stale, pk=self.pk).update(last_used_at=now) == 1


Row = TypeVar("Row", bound=BearerToken)


class BearerQuerySet(models.QuerySet[Row]):
    def revoke(self, now: datetime) -> int:
        """Revoke these; return how many were not revoked before."""
        return self.filter(revoked_at=None).update(revoked_at=now)
