"""The health of endpoints: their state, and statistics of the last 24 hours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import accumulate
from typing import NamedTuple

from django.db.models import Q

from webhooks_core.models import AttemptHour, Endpoint
from webhooks_core.models.deliveries import ALL_ENDPOINTS
from webhooks_core.models.lookups import among
from webhooks_core.upkeep.stats import BOUNDS_MS

HOURS = 24


class Health(StrEnum):
    """The state of an endpoint: the first of these that applies."""

    DELETED = "Deleted"
    DISABLED = "Disabled"
    INACTIVE = "Inactive"
    PAUSED = "Paused"
    HANGING = "Hanging"
    FAILING = "Failing"
    HEALTHY = "Healthy"

    @classmethod
    def of(cls, endpoint: Endpoint) -> Health:
        facts = {
            cls.DELETED: endpoint.deleted_at is not None,
            cls.DISABLED: endpoint.is_disabled,
            cls.INACTIVE: not endpoint.active,
            cls.PAUSED: endpoint.paused_at is not None,
            cls.HANGING: endpoint.is_hanging,
            cls.FAILING: endpoint.consecutive_failures > 0,
        }
        return next((state for state, fits in facts.items() if fits), cls.HEALTHY)

    @property
    def tone(self) -> str:
        return _TONES[self]

    @property
    def advice(self) -> str:
        """How an endpoint in this state delivers again; "" if it does."""
        return _ADVICE.get(self, "")

    @property
    def condition(self) -> Q:
        """As `of`, for a query."""
        condition = _CONDITIONS.get(self, Q())
        for earlier in list(Health)[: list(Health).index(self)]:
            condition &= ~_CONDITIONS[earlier]
        return condition


_TONES = {
    Health.DELETED: "neutral",
    Health.DISABLED: "error",
    Health.INACTIVE: "neutral",
    Health.PAUSED: "pending",
    Health.HANGING: "error",
    Health.FAILING: "error",
    Health.HEALTHY: "success",
}
_ADVICE = {
    Health.DISABLED: (
        "It failed too often in a row. Its owner sets another url, or an operator enables it; "
        "then its counter starts at 0. Events published until then skip it."
    ),
    Health.INACTIVE: (
        "Its owner has switched it off and may switch it on, or the owner is inactive. "
        "Events published until then skip it."
    ),
    Health.PAUSED: "Resume it. Events published until then wait.",
    Health.HANGING: (
        "Its last attempts timed out, so it gets one request at a time, a probe. After a success "
        "all that is due is sent."
    ),
}
_CONDITIONS = {
    Health.DELETED: Q(deleted_at__isnull=False),
    Health.DISABLED: Q(status=Endpoint.Status.DISABLED),
    Health.INACTIVE: Q(active=False),
    Health.PAUSED: Q(paused_at__isnull=False),
    Health.HANGING: Q(hanging_since__isnull=False),
    Health.FAILING: Q(consecutive_failures__gt=0),
}


class Bar(NamedTuple):
    """One hour of a chart: failed attempts stacked on successful ones, in units of the chart."""

    x: int
    ok_y: int
    ok_height: int
    failed_y: int
    failed_height: int


BAR_WIDTH, HEIGHT = 5, 24


@dataclass(frozen=True, slots=True)
class Day:
    """Attempts of the last 24 hours by hour, oldest first; `p95_ms` is the bound that 95 % keep."""

    ok: Sequence[int]
    failed: Sequence[int]
    p95_ms: float | None = None

    @property
    def attempts(self) -> int:
        return sum(self.ok) + sum(self.failed)

    @property
    def formatted_attempts(self) -> str:
        return f"{self.attempts:,}"

    @property
    def success(self) -> str | None:
        """The share of successful attempts, rounded down: 100 % means all."""
        if not self.attempts:
            return None
        return f"{math.floor(1000 * sum(self.ok) / self.attempts) / 10:g} %"

    @property
    def p95(self) -> str | None:
        if self.p95_ms is None:
            return None
        if math.isinf(self.p95_ms):
            return f"> {BOUNDS_MS[-1]:,} ms"
        return f"≤ {self.p95_ms:,} ms"

    @property
    def description(self) -> str:
        """The chart as text, for screen readers."""
        return (
            f"{sum(self.ok)} successful and {sum(self.failed)} failed attempts in 24 h"
        )

    @property
    def bars(self) -> list[Bar]:
        counts = list(zip(self.ok, self.failed, strict=True))
        highest = max(map(sum, counts), default=0)
        return [
            _bar(number, ok, failed, highest)
            for number, (ok, failed) in enumerate(counts)
        ]


def _bar(number: int, ok: int, failed: int, highest: int) -> Bar:
    failed_height = _height(failed, highest)
    ok_height = min(_height(ok, highest), HEIGHT - failed_height)
    top = HEIGHT - ok_height
    return Bar(number * BAR_WIDTH, top, ok_height, top - failed_height, failed_height)


def _height(count: int, highest: int) -> int:
    """Return a height at which even one attempt among many is visible."""
    return max(round(HEIGHT * count / highest), 2) if count else 0


def days(endpoints: Iterable[Endpoint], *, now: datetime) -> Mapping[int, Day]:
    """Return the last 24 hours of each endpoint, by its pk."""
    return _days([endpoint.pk for endpoint in endpoints], now)


def day(now: datetime) -> Day:
    """Return the last 24 hours of all endpoints together."""
    return _days([ALL_ENDPOINTS], now)[ALL_ENDPOINTS]


def _days(endpoint_ids: Sequence[int], now: datetime) -> Mapping[int, Day]:
    rows: dict[int, list[AttemptHour]] = {pk: [] for pk in endpoint_ids}
    of_endpoints = among(endpoint_ids, of="endpoint_id")
    for row in AttemptHour.objects.filter(of_endpoints, hour__gte=_hours(now)[0]):
        rows[row.endpoint_id].append(row)
    return {pk: _day(own, now) for pk, own in rows.items()}


def _hours(now: datetime) -> list[datetime]:
    """Return the start of each of the last hours, oldest first."""
    this = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return [this - timedelta(hours=ago) for ago in reversed(range(HOURS))]


def _day(rows: Iterable[AttemptHour], now: datetime) -> Day:
    by_hour = {row.hour: row for row in rows}
    nothing = AttemptHour()
    day = [by_hour.get(hour, nothing) for hour in _hours(now)]
    latencies = [
        sum(counts)
        for counts in zip(*filter(None, (row.latencies for row in day)), strict=True)
    ]
    return Day([row.ok for row in day], [row.failed for row in day], _p95(latencies))


def _p95(latencies: Sequence[int]) -> float | None:
    """Return the bound in milliseconds that 95 % of the attempts keep, infinity above all bounds."""
    wanted = 0.95 * sum(latencies)
    reached = zip((*BOUNDS_MS, math.inf), accumulate(latencies), strict=False)
    return next((bound for bound, count in reached if count >= wanted > 0), None)
