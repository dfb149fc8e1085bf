"""Erase a tenant: what the gateway has of it beside its webhooks."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from gateway.chat.models import BudgetCounter, RequestRecord, UsageDay
from gateway.models import (
    Document,
    GatewayKey,
    IdempotencyKey,
    PolicyDecision,
    PortalLink,
)
from gateway.webhooks import PROFILE
from webhooks_core.upkeep.removal import OwnerErasure


def tenant_erasure(tenant: str) -> OwnerErasure:
    """Return what `manage.py erase --tenant` removes; sums without a tenant stay."""
    rows: dict[str, QuerySet[Any]] = {
        "keys": GatewayKey.objects.filter(tenant=tenant),
        "portal links": PortalLink.objects.filter(tenant=tenant),
        "policy decisions": PolicyDecision.objects.filter(tenant=tenant),
        "idempotency keys": IdempotencyKey.objects.filter(tenant=tenant),
        "documents": Document.objects.filter(tenant=tenant),
        "chat requests": RequestRecord.objects.filter(tenant=tenant),
        "budget counters": BudgetCounter.objects.filter(tenant=tenant),
        "days of usage": UsageDay.objects.filter(tenant=tenant),
    }
    return OwnerErasure(profile=PROFILE, owner=tenant, rows=rows)
