"""The removal of old rows of the gateway: in small batches, oldest first."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from gateway.idempotency import KEPT_FOR
from gateway.models import Document, IdempotencyKey, PolicyDecision, PortalLink
from gateway.portal.links import KEPT_DAYS

# A writer waits for one batch at most; a document has thousands of chunks.
DECISIONS, DOCUMENTS, KEYS, LINKS = 500, 10, 500, 500
# One run ends well within a task's time-out; the next one continues.
BUDGET_S = 30.0


@dataclass(frozen=True, slots=True)
class Removed:
    decisions: int = 0
    documents: int = 0
    idempotency_keys: int = 0
    portal_links: int = 0


def remove_old(*, budget_s: float = BUDGET_S) -> Removed:
    """Remove what is older than its setting says; 0 days keep it without limit."""
    until = time.monotonic() + budget_s
    decisions, documents = PolicyDecision.objects.all(), Document.objects.without_text()
    return Removed(
        _remove(decisions, DECISIONS, settings.GATEWAY_DECISION_RETENTION_DAYS, until),
        _remove(documents, DOCUMENTS, settings.GATEWAY_DOCUMENT_RETENTION_DAYS, until),
        _remove(IdempotencyKey.objects.all(), KEYS, KEPT_FOR.days, until),
        _remove(PortalLink.objects.all(), LINKS, KEPT_DAYS, until),
    )


def _remove(rows: QuerySet[Any], batch: int, days: int, until: float) -> int:
    if not days:
        return 0
    before, removed = timezone.now() - timedelta(days=days), 0
    # By id, which is the order of time: this needs no index on the time.
    oldest = rows.order_by("pk").values_list("pk", "created_at")
    while time.monotonic() < until:
        pks = [pk for pk, created_at in oldest[:batch] if created_at < before]
        if not pks:
            break
        rows.filter(pk__in=pks).delete()
        removed += len(pks)
    return removed
