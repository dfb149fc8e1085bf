"""Attempts summed by endpoint and hour: charts read these sums, never the history."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Max, Q
from django.db.models.functions import TruncHour

from webhooks_core.models import Attempt, AttemptHour, EngineState
from webhooks_core.outcomes import Outcome
from webhooks_core.stats import BOUNDS_MS

# Longer than any transaction that writes attempts: each holds a lease.
COMMITTED_AFTER = timedelta(minutes=1)
AT_ONCE = 100_000
KEPT = timedelta(hours=25)
WRITTEN_AT_ONCE = 1000


def count_attempts(now: datetime) -> None:
    """Add the attempts that were written since the last call to the sums, and remove old sums.

    An id is given before its commit: what was the newest one a while ago has all earlier ones
    committed. The position moves in the transaction that writes the sums, so that a crash counts
    no attempt twice and leaves none out.
    """
    AttemptHour.objects.filter(hour__lt=now - KEPT).delete()
    state = EngineState.objects.filter(pk=1).first()
    if state is None or _is_recent(state.attempts_seen_at, now):
        return
    newest = Attempt.objects.aggregate(newest=Max("pk"))["newest"] or 0
    until = min(state.attempts_seen, state.attempts_counted + AT_ONCE)
    position = EngineState.objects.filter(
        pk=1, attempts_counted=state.attempts_counted, attempts_seen=state.attempts_seen
    )
    with transaction.atomic():
        # Whoever moves the position writes the sums.
        if position.update(
            attempts_counted=until, attempts_seen=newest, attempts_seen_at=now
        ):
            _add(state.attempts_counted, until, since=now - KEPT)


def _is_recent(at: datetime | None, now: datetime) -> bool:
    return at is not None and at <= now < at + COMMITTED_AFTER


def _add(after: int, until: int, *, since: datetime) -> None:
    """Add the attempts with ids above `after`, up to `until`."""
    rows = _sums(after, until, since)
    known = {
        (row.endpoint_id, row.hour): row
        for row in AttemptHour.objects.filter(
            endpoint__in={row["endpoint"] for row in rows},
            hour__in={row["hour"] for row in rows},
        )
    }
    AttemptHour.objects.bulk_create(
        (_sum(row, known.get((row["endpoint"], row["hour"]))) for row in rows),
        batch_size=WRITTEN_AT_ONCE,
        update_conflicts=True,
        unique_fields=["endpoint", "hour"],
        update_fields=["ok", "failed", "latencies"],
    )


def _sums(after: int, until: int, since: datetime) -> list[Any]:
    rows = Attempt.objects.filter(pk__gt=after, pk__lte=until, started_at__gte=since)
    hour = TruncHour("started_at", tzinfo=UTC)
    return list(
        rows.values(endpoint=F("delivery__endpoint"), hour=hour)
        .annotate(
            all=Count("pk"),
            ok=Count("pk", filter=Q(outcome=Outcome.OK)),
            **{
                f"within_{bound}": Count("pk", filter=Q(duration_ms__lte=bound))
                for bound in BOUNDS_MS
            },
        )
        .order_by("endpoint", "hour")
    )


def _sum(row: Mapping[str, Any], known: AttemptHour | None) -> AttemptHour:
    """Return new attempts and those that are known as one row."""
    within = [0, *(row[f"within_{bound}"] for bound in BOUNDS_MS), row["all"]]
    counts = [more - less for less, more in pairwise(within)]
    total = AttemptHour(
        endpoint_id=row["endpoint"],
        hour=row["hour"],
        ok=row["ok"],
        failed=row["all"] - row["ok"],
        latencies=counts,
    )
    if known:
        total.ok += known.ok
        total.failed += known.failed
        total.latencies = [
            sum(pair) for pair in zip(counts, known.latencies, strict=True)
        ]
    return total
