"""Subscriptions of MCP Events: what an endpoint of the engine does not have."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from webhooks_core.models import Endpoint


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
    subscription_id = models.CharField(max_length=40, unique=True)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.subscription_id

    @property
    def connection(self) -> tuple[int, str]:
        return self.account_id, self.client
