"""Subscriptions of MCP Events: what an endpoint of the engine does not have."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from webhooks_core.models import Endpoint


class EventSubscriptionQuerySet(models.QuerySet["EventSubscription"]):
    def live(self, now: datetime) -> Self:
        """Return those that have not ended; one whose time is over has, before the upkeep sees it."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), ended_at=None)

    def end(self, now: datetime) -> int:
        """End those that have not ended; return how many."""
        return self.filter(ended_at=None).update(ended_at=now)


class EventSubscription(models.Model):
    """One account's subscription at one URL, made by one client.

    `client` is the connected application or the personal token that made it. `subscription_id` is
    a digest of all that identifies it, so that it is the same after a lapse.
    """

    endpoint = models.OneToOneField(
        Endpoint, models.CASCADE, primary_key=True, related_name="+"
    )
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    client = models.CharField(max_length=64)
    subscription_id = models.CharField(max_length=40)
    name = models.CharField(max_length=128)
    arguments = models.JSONField(default=dict)
    expires_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    refreshed_at = models.DateTimeField(default=timezone.now)

    objects = EventSubscriptionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["subscription_id"],
                condition=Q(ended_at=None),
                name="event_subscription_once",
            )
        ]
        indexes = [
            models.Index(
                fields=["account", "name"],
                condition=Q(ended_at=None),
                name="event_subscription_live",
            )
        ]

    def __str__(self) -> str:
        return self.subscription_id

    def is_live(self, now: datetime) -> bool:
        """As `EventSubscriptionQuerySet.live`."""
        is_over = self.expires_at is not None and self.expires_at <= now
        return self.ended_at is None and not is_over
