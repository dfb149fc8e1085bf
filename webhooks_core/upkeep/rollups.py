"""Attempts summed by endpoint and hour: charts read these sums, never the history."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Max, Q
from django.db.models.functions import TruncHour

from webhooks_core.models import Attempt, AttemptHour, EngineState
from webhooks_core.models.deliveries import ALL_ENDPOINTS
from webhooks_core.network.outcomes import Outcome
from webhooks_core.upkeep.stats import BOUNDS_MS

# Longer than any transaction that writes attempts: each holds a lease.
COMMITTED_AFTER = timedelta(minutes=1)
AT_ONCE = 50_000
KEPT = timedelta(hours=25)


def count_attempts(now: datetime) -> None:
    """Add the attempts that were written since the last call to the sums, and remove old sums.

    An id is given before its commit: what was the newest one a while ago has all earlier ones
    committed.
    """
    AttemptHour.objects.filter(hour__lt=now - KEPT).delete()
    state = EngineState.objects.filter(pk=1).first()
    if state is None or _is_recent(state.attempts_seen_at, now):
        return
    newest = Attempt.objects.aggregate(newest=Max("pk"))["newest"] or 0
    for after in range(state.attempts_counted, state.attempts_seen, AT_ONCE):
        until = min(after + AT_ONCE, state.attempts_seen)
        if not _count(after, until, since=now - KEPT):
            return  # another process counts
    EngineState.objects.filter(pk=1).update(attempts_seen=newest, attempts_seen_at=now)


def _count(after: int, until: int, *, since: datetime) -> bool:
    """Count the attempts with ids above `after`, up to `until`; return False if another process did.

    The position moves in the transaction that writes the sums, so that a crash counts no attempt
    twice and leaves none out. It moves last: others write its row too.
    """
    rows = _sums(after, until, since)
    sums = _added(rows + _totals(rows))
    with transaction.atomic():
        AttemptHour.objects.bulk_create(
            sums,
            update_conflicts=True,
            unique_fields=["endpoint", "hour"],
            update_fields=["ok", "failed", "latencies"],
        )
        position = EngineState.objects.filter(pk=1, attempts_counted=after)
        is_first = position.update(attempts_counted=until) == 1
        transaction.set_rollback(not is_first)
    return is_first


def _is_recent(at: datetime | None, now: datetime) -> bool:
    return at is not None and at <= now < at + COMMITTED_AFTER


def _added(rows: Sequence[Mapping[str, Any]]) -> list[AttemptHour]:
    """Return the sums with these attempts."""
    known = {
        (row.endpoint_id, row.hour): row
        for row in AttemptHour.objects.filter(
            endpoint__in={row["endpoint"] for row in rows},
            hour__in={row["hour"] for row in rows},
        )
    }
    return [_sum(row, known.get((row["endpoint"], row["hour"]))) for row in rows]


def _totals(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the sums of all endpoints by hour."""
    totals: dict[datetime, Counter[str]] = defaultdict(Counter)
    for row in rows:
        numbers = {key: row[key] for key in row.keys() - {"endpoint", "hour"}}
        totals[row["hour"]].update(numbers)
    return [
        {"endpoint": ALL_ENDPOINTS, "hour": hour, **numbers}
        for hour, numbers in sorted(totals.items())
    ]


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
