"""How long policy decisions and documents are kept: removed in small batches, oldest first."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from gateway.models import Document, PolicyDecision

# A writer waits for a batch at most; a document brings thousands of chunks.
DECISIONS, DOCUMENTS = 500, 10
# One run ends well within a task's time-out, and the next goes on.
BUDGET_S = 30.0


@dataclass(frozen=True, slots=True)
class Removed:
    decisions: int = 0
    documents: int = 0


def remove_old(*, budget_s: float = BUDGET_S) -> Removed:
    """Remove what is older than its setting says; 0 days keep it for ever."""
    until = time.monotonic() + budget_s
    return Removed(
        _remove(_decisions, settings.GATEWAY_DECISION_RETENTION_DAYS, until),
        _remove(_documents, settings.GATEWAY_DOCUMENT_RETENTION_DAYS, until),
    )


def _remove(batch: Callable[[datetime], int], days: int, until: float) -> int:
    if not days:
        return 0
    before, removed = timezone.now() - timedelta(days=days), 0
    while time.monotonic() < until and (count := batch(before)):
        removed += count
    return removed


def _decisions(before: datetime) -> int:
    # By id, which is the order of time: no index on the time is needed, nor a whole scan.
    oldest = PolicyDecision.objects.order_by("pk").values_list("pk", "created_at")
    pks = [pk for pk, at in oldest[:DECISIONS] if at < before]
    PolicyDecision.objects.filter(pk__in=pks).delete()
    return len(pks)


def _documents(before: datetime) -> int:
    oldest = Document.objects.order_by("pk").values_list("pk", "created_at")
    pks = [pk for pk, at in oldest[:DOCUMENTS] if at < before]
    with transaction.atomic():
        # Without the text: what is deleted is read first.
        Document.objects.without_text().filter(pk__in=pks).delete()
    return len(pks)
