"""The health of endpoints: their state, and statistics of the last 24 hours."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Q

from webhooks_core.models import Endpoint
from webhooks_core.outcomes import Outcome

HOURS = 24
# Deliveries per endpoint: enough for statistics, and a limit for busy endpoints.
DELIVERIES_PER_ROW = 200
DELIVERIES_PER_PAGE = 2000


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
    """Attempts of the last 24 hours: counts by hour, oldest first, and the p95 of their latency."""

    ok: Sequence[int]
    failed: Sequence[int]
    p95_ms: int | None = None

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
        return None if self.p95_ms is None else f"{self.p95_ms:,} ms"

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


class _Row(NamedTuple):
    endpoint: int
    started_at: datetime
    outcome: str
    duration_ms: int


def days(
    endpoints: Iterable[Endpoint], *, now: datetime, deliveries: int
) -> Mapping[int, Day]:
    """Return the last 24 hours of each endpoint, by its pk.

    Only the newest `deliveries` of each endpoint count: one query reads one short index range per
    endpoint, whatever the size of the history.
    """
    rows: dict[int, list[_Row]] = defaultdict(list)
    pks = [endpoint.pk for endpoint in endpoints]
    for row in _rows(pks, since=now - timedelta(hours=HOURS), deliveries=deliveries):
        rows[row.endpoint].append(row)
    return {pk: _day(rows[pk], now) for pk in pks}


def _day(rows: Sequence[_Row], now: datetime) -> Day:
    counts = {True: [0] * HOURS, False: [0] * HOURS}
    for row in rows:
        ago = int((now - row.started_at) / timedelta(hours=1))
        counts[row.outcome == Outcome.OK][HOURS - 1 - min(max(ago, 0), HOURS - 1)] += 1
    durations = sorted(row.duration_ms for row in rows)
    p95 = durations[math.ceil(0.95 * len(durations)) - 1] if durations else None
    return Day(counts[True], counts[False], p95)


_ATTEMPTS = (
    "SELECT d.endpoint_id, a.started_at, a.outcome, a.duration_ms"
    " FROM (SELECT id, endpoint_id FROM webhooks_core_delivery"
    " WHERE endpoint_id = %s ORDER BY id DESC LIMIT %s) AS d"
    " JOIN webhooks_core_attempt a ON a.delivery_id = d.id WHERE a.started_at >= %s"
)


def _rows(pks: Sequence[int], *, since: datetime, deliveries: int) -> list[_Row]:
    # SQL, because Django has no union of limited queries that SQLite accepts too.
    if not pks:
        return []
    oldest = connection.ops.adapt_datetimefield_value(since)
    params = [value for pk in pks for value in (pk, deliveries, oldest)]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join([_ATTEMPTS] * len(pks)), params)
        return [_row(columns) for columns in cursor.fetchall()]


def _row(columns: tuple[Any, ...]) -> _Row:
    row = _Row._make(columns)
    if row.started_at.tzinfo is None:  # SQLite's driver reads times as naive
        return row._replace(started_at=row.started_at.replace(tzinfo=UTC))
    return row
