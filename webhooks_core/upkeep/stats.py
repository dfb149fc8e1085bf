"""Statistics of the engine: what waits, for how long, and whether a worker is alive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Min, Q, QuerySet, Sum

from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    Endpoint,
    EndpointQueue,
    EngineState,
)
from webhooks_core.network.outcomes import REACHED_STORED
from webhooks_core.network.url_policy import is_local

# The sweep is due every minute, and the scheduler of a task cluster runs twice a minute.
SILENT_AFTER = timedelta(minutes=3)


def last_seen_at(now: datetime) -> datetime | None:
    """Return when a worker last ran: now if a dispatcher is live, else at the last scheduled sweep."""
    if DispatcherLease.objects.live().exists():
        return now
    return EngineState.objects.filter(pk=1).values_list("swept_at", flat=True).first()


def oldest_due(now: datetime) -> timedelta:
    """Return for how long the most overdue delivery has waited; zero if none is overdue.

    Suspended deliveries are not due, and those of an endpoint that hangs wait for a probe. One
    index lookup per queue that is due or leased, however long the backlog and the list of
    endpoints are.
    """
    # What a publisher that died did not notify is missing until the sweep finds it.
    busy = Q(queue__next_due_at__lte=now) | Q(queue__leased_by__isnull=False)
    rows = Endpoint.objects.receiving().filter(busy, hanging_since=None)
    earliest: datetime | None = rows.aggregate(at=Min(Delivery.objects.next_due()))[
        "at"
    ]
    return max(now - earliest, timedelta(0)) if earliest else timedelta(0)


def has_arrived_since(time: datetime) -> bool:
    """Return True if one of the latest attempts to other machines reached a receiver."""
    latest = Attempt.objects.order_by("-pk").values_list(
        "started_at", "outcome", "delivery__endpoint__url"
    )[:RECENT]
    return any(
        at >= time and outcome in REACHED_STORED and not is_local(url)
        for at, outcome, url in latest
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStats:
    """The state of the engine; `alerted` endpoints have an incident that was reported.

    `suspended` ones are part of the `waiting` ones; these and the others are each counted up to
    MAX_COUNTED. `offline_dispatchers` postpone attempts because their machine has no network.
    """

    endpoints: int
    failing: int
    hanging: int
    disabled: int
    paused: int
    inactive: int
    alerted: int
    waiting: int
    suspended: int
    in_flight: int
    dispatchers: int
    offline_dispatchers: int


RECENT = 1000
MAX_COUNTED = 100_000
# Fewer pending deliveries than this are all read.
MAX_READ = 10_000


def engine_stats() -> EngineStats:
    """Return the state of the engine: four to six queries, which do not read the history."""
    endpoints = Endpoint.objects.filter(deleted_at=None)
    active = Q(status=Endpoint.Status.ACTIVE)
    return EngineStats(
        **endpoints.aggregate(
            endpoints=Count("pk"),
            failing=Count("pk", filter=active & Q(consecutive_failures__gt=0)),
            hanging=Count("pk", filter=active & Q(hanging_since__isnull=False)),
            disabled=Count("pk", filter=~active),
            paused=Count("pk", filter=Q(paused_at__isnull=False)),
            inactive=Count("pk", filter=Q(active=False)),
            alerted=Count("pk", filter=Q(alerted_at__isnull=False)),
        ),
        **_pending(),
        **DispatcherLease.objects.live().aggregate(
            dispatchers=Count("pk"), offline_dispatchers=Count("offline_since")
        ),
    )


def _pending() -> dict[str, int]:
    """Count pending deliveries in an index, except claimed ones, which have none."""
    pending = Delivery.objects.pending()
    claims = pending.values("claimed_by")
    first = claims[:MAX_READ].aggregate(all=Count("*"), claimed=Count("claimed_by"))
    suspended = _count(pending.filter(endpoint__in=Endpoint.objects.idle()))
    if first["all"] < MAX_READ:
        in_flight = first["claimed"]
        waiting = first["all"] - in_flight
    else:
        leased = EndpointQueue.objects.filter(leased_by__isnull=False).values("pk")
        # The earliest due are claimed first.
        earliest = claims.filter(endpoint__in=leased)
        earliest = earliest.order_by("endpoint", "next_attempt_at")[:MAX_COUNTED]
        in_flight = earliest.aggregate(claimed=Count("claimed_by"))["claimed"]
        others = _count(pending.filter(endpoint__in=Endpoint.objects.receiving()))
        waiting = max(suspended + others - in_flight, 0)
    return {"waiting": waiting, "suspended": suspended, "in_flight": in_flight}


def _count(rows: QuerySet[Delivery]) -> int:
    return rows[:MAX_COUNTED].count()


# Upper bounds of the latency's buckets, in milliseconds.
BOUNDS_MS = (10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """Attempts of one profile with one outcome.

    `delivered` and `failed` count those that ended their delivery; `within` maps an upper bound in
    milliseconds, None for all, to the number of attempts.
    """

    profile: str
    outcome: str
    attempts: int
    delivered: int
    failed: int
    milliseconds: int
    within: Mapping[int | None, int]


def attempts_between(after: int, until: int) -> list[Attempts]:
    """Return the attempts with ids above `after`, up to `until`, by profile and outcome."""
    last = Q(delivery__attempts=F("number"))
    status = Delivery.Status
    rows = (
        Attempt.objects.filter(pk__gt=after, pk__lte=until)
        .values("outcome", profile=F("delivery__endpoint__profile"))
        .annotate(
            attempts=Count("pk"),
            delivered=Count("pk", filter=last & Q(delivery__status=status.DELIVERED)),
            failed=Count("pk", filter=last & Q(delivery__status=status.FAILED)),
            milliseconds=Sum("duration_ms"),
            **{
                f"within_{bound}": Count("pk", filter=Q(duration_ms__lte=bound))
                for bound in BOUNDS_MS
            },
        )
        .order_by("profile", "outcome")
    )
    return [_attempts(dict(row)) for row in rows]


def _attempts(row: dict[str, Any]) -> Attempts:
    within: dict[int | None, int] = {
        bound: row.pop(f"within_{bound}") for bound in BOUNDS_MS
    }
    return Attempts(**row, within=within | {None: row["attempts"]})
