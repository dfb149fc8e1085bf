"""Attempts summed by endpoint and hour: charts read these sums, never the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Max, Q
from django.db.models.functions import TruncMinute

from webhooks_core.models import Attempt, AttemptHour, EngineState
from webhooks_core.models.history import ALL_ENDPOINTS, SLOT
from webhooks_core.network.outcomes import Outcome
from webhooks_core.upkeep.stats import BOUNDS_MS

# Longer than any transaction that writes attempts: each holds a lease.
COMMITTED_AFTER = timedelta(minutes=1)
AT_ONCE = 50_000
# As long as charts show hours, and the slots of an hour.
KEPT, SLOTS_KEPT = timedelta(days=31), timedelta(hours=25)


def count_attempts(now: datetime) -> None:
    """Add the attempts that were written since the last call to the sums, and remove old sums.

    An id is given before its commit: what was the newest one a while ago has all earlier ones
    committed.
    """
    AttemptHour.objects.filter(hour__lt=now - KEPT).delete()
    _remove_slots(now - SLOTS_KEPT)
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
    sums = _added(_sums(after, until, since))
    with transaction.atomic():
        AttemptHour.objects.bulk_create(
            sums,
            update_conflicts=True,
            unique_fields=["endpoint", "hour"],
            update_fields=["ok", "failed", "latencies", "slots"],
        )
        position = EngineState.objects.filter(pk=1, attempts_counted=after)
        is_first = position.update(attempts_counted=until) == 1
        transaction.set_rollback(not is_first)
    return is_first


def _is_recent(at: datetime | None, now: datetime) -> bool:
    return at is not None and at <= now < at + COMMITTED_AFTER


def _remove_slots(before: datetime) -> None:
    """Remove the slots of the hours that have just become too old."""
    old = Q(hour__lt=before, hour__gte=before - timedelta(hours=3))
    AttemptHour.objects.filter(old, slots__isnull=False).update(slots=None)


def _added(rows: Sequence[Mapping[str, Any]]) -> list[AttemptHour]:
    """Return the sums of endpoints, and of all together, with these attempts."""
    sums: dict[tuple[int, datetime], AttemptHour] = {}
    for row in _known(rows):
        sums[row.endpoint_id, row.hour] = row
    for attempts in rows:
        minute, numbers = attempts["minute"], _numbers(attempts)
        hour = minute.replace(minute=0)
        for endpoint_id in (attempts["endpoint"], ALL_ENDPOINTS):
            row = sums.setdefault(
                (endpoint_id, hour),
                AttemptHour(endpoint_id=endpoint_id, hour=hour),
            )
            row.add((minute - hour) // SLOT, numbers)
    return list(sums.values())


def _known(rows: Sequence[Mapping[str, Any]]) -> list[AttemptHour]:
    hours = {row["minute"].replace(minute=0) for row in rows}
    endpoints = {ALL_ENDPOINTS, *(row["endpoint"] for row in rows)}
    return list(AttemptHour.objects.filter(endpoint__in=endpoints, hour__in=hours))


def _numbers(row: Mapping[str, Any]) -> list[int]:
    """Return ok, failed, and how many took how long."""
    within = [0, *(row[f"within_{bound}"] for bound in BOUNDS_MS), row["all"]]
    counts = [more - less for less, more in pairwise(within)]
    return [row["ok"], row["all"] - row["ok"], *counts]


def _sums(after: int, until: int, since: datetime) -> list[Any]:
    rows = Attempt.objects.filter(pk__gt=after, pk__lte=until, started_at__gte=since)
    minute = TruncMinute("started_at", tzinfo=UTC)
    return list(
        rows.values(endpoint=F("delivery__endpoint"), minute=minute)
        .annotate(
            all=Count("pk"),
            ok=Count("pk", filter=Q(outcome=Outcome.OK)),
            **{
                f"within_{bound}": Count("pk", filter=Q(duration_ms__lte=bound))
                for bound in BOUNDS_MS
            },
        )
        .order_by("endpoint", "minute")
    )
