"""Erase a tenant: what the gateway has of it beside its webhooks."""

from __future__ import annotations

from itertools import starmap
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from gateway.chat.budget_models import BudgetCounter
from gateway.chat.metering import budget_stores
from gateway.chat.metering.budget_counters import CounterKey
from gateway.chat.models import LoggedRequest, UsageDay, UsageRecord
from gateway.models import (
    Document,
    GatewayKey,
    IdempotencyKey,
    PolicyDecision,
    PortalLink,
)
from gateway.webhooks import PROFILE
from webhooks_core.upkeep.erasure import OwnerErasure


class TenantErasure(OwnerErasure):
    """Also erases what Redis has: budgets' counters."""

    __slots__ = ()

    def erase(self) -> None:
        """As OwnerErasure.erase(). Raises RedisError, too."""
        keys = BudgetCounter.objects.filter(tenant=self.owner).values_list(
            "budget", "subject", "window", "tenant"
        )
        if settings.REDIS_URL:
            budget_stores.forget(settings.REDIS_URL, starmap(CounterKey, keys))
        super().erase()


def tenant_erasure(tenant: str) -> OwnerErasure:
    """Return what `manage.py erase --tenant` removes; sums without a tenant stay."""
    rows: dict[str, QuerySet[Any]] = {
        "keys": GatewayKey.objects.filter(tenant=tenant),
        "portal links": PortalLink.objects.filter(tenant=tenant),
        "policy decisions": PolicyDecision.objects.filter(tenant=tenant),
        "idempotency keys": IdempotencyKey.objects.filter(tenant=tenant),
        "documents": Document.objects.filter(tenant=tenant),
        "chat requests": UsageRecord.objects.filter(tenant=tenant),
        "logged requests": LoggedRequest.objects.filter(tenant=tenant),
        "budget counters": BudgetCounter.objects.filter(tenant=tenant),
        "days of usage": UsageDay.objects.filter(tenant=tenant),
    }
    return TenantErasure(profile=PROFILE, owner=tenant, rows=rows)
