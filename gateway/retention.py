"""The removal of old rows of the gateway: in small batches, oldest first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from gateway.models import Document, IdempotencyKey, PolicyDecision, PortalLink
from gateway.portal.links import KEPT_DAYS
from gateway.publishing import KEPT_FOR

# A writer waits for one batch at most.
BATCH = 100
# One run ends well within a task's time-out; the next one continues.
BUDGET_S = 30.0


def remove_old(*, budget_s: float = BUDGET_S) -> int:
    """Remove what is older than its setting says, and return how many rows; 0 days keep all."""
    until, removed = time.monotonic() + budget_s, 0
    for rows, days in _kept():
        before = timezone.now() - timedelta(days=days)
        # By id, which is the order of time: this needs no index on the time.
        oldest = rows.order_by("pk").values_list("pk", "created_at")[:BATCH]
        while days and time.monotonic() < until:
            pks = [pk for pk, created_at in oldest.all() if created_at < before]
            if not pks:
                break
            rows.filter(pk__in=pks).delete()
            removed += len(pks)
    return removed


def _kept() -> Iterator[tuple[QuerySet[Any], int]]:
    """Yield what is kept for so many days."""
    yield PolicyDecision.objects.all(), settings.GATEWAY_DECISION_RETENTION_DAYS
    yield Document.objects.defer("content"), settings.GATEWAY_DOCUMENT_RETENTION_DAYS
    yield IdempotencyKey.objects.all(), KEPT_FOR.days
    yield PortalLink.objects.all(), KEPT_DAYS
