"""Personal API tokens, stored as hashes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q

from recording import token_memory
from webhooks_core.models.bearer import BearerQuerySet, BearerToken

INACTIVITY = timedelta(days=90)


class PersonalTokenQuerySet(BearerQuerySet["PersonalToken"]):
    def ended(self, since: datetime) -> Self:
        """Select the tokens that had ended by this time, for good."""
        unused = Q(last_used_at__lte=since - INACTIVITY) | Q(
            last_used_at=None, created_at__lte=since - INACTIVITY
        )
        return self.filter(unused | Q(revoked_at__lte=since) | Q(expires_at__lte=since))

    def revoke(self, now: datetime) -> int:
        token_memory.revoked()
        return super().revoke(now)


class PersonalToken(BearerToken):
    """A token that its user created on the account's page or on the command line."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    display_prefix = models.CharField("token", max_length=24)
    expires_at = models.DateTimeField()

    objects = PersonalTokenQuerySet.as_manager()

    def state(self, now: datetime) -> str:
        """Return `live`, `revoked`, `expired` or `unused` (for 90 days)."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at <= now:
            return "expired"
        is_used = (self.last_used_at or self.created_at) > now - INACTIVITY
        return "live" if is_used else "unused"
