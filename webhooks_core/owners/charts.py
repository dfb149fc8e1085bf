"""Attempts over a period, from the sums by hour: one bar for each part, successes and latencies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

from webhooks_core.models import AttemptHour, Endpoint
from webhooks_core.models.history import ALL_ENDPOINTS, SLOT
from webhooks_core.models.lookups import among
from webhooks_core.upkeep.stats import BOUNDS_MS

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BAR_WIDTH, HEIGHT = 5, 24


class Period(NamedTuple):
    """A period of a chart: its key in an address, its name, and its parts."""

    key: str
    name: str
    parts: int
    part: timedelta

    @property
    def part_name(self) -> str:
        minutes = self.part // timedelta(minutes=1)
        return (
            f"{minutes} minutes"
            if minutes < 60
            else {1: "hour", 6: "6 hours", 24: "day"}[minutes // 60]
        )

    def start(self, now: datetime) -> datetime:
        """Return the start of the first part; the last one holds `now`."""
        last = now - (now - EPOCH) % self.part
        return last - (self.parts - 1) * self.part


HOURS_24 = Period("24h", "24 hours", 24, HOUR)
PERIODS = {
    period.key: period
    for period in (
        Period("1h", "1 hour", 12, SLOT),
        Period("6h", "6 hours", 12, 6 * SLOT),
        HOURS_24,
        Period("7d", "7 days", 28, 6 * HOUR),
        Period("30d", "30 days", 30, DAY),
    )
}


def period_of(key: str) -> Period:
    """Return the period with this key, for any other text the last 24 hours."""
    return PERIODS.get(key, HOURS_24)


class Bar(NamedTuple):
    """One part of a chart: failed attempts stacked on successful ones, in units of the chart."""

    x: int
    ok_y: int
    ok_height: int
    failed_y: int
    failed_height: int
    description: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Attempts by part of a period, oldest first, and how many took how long (by `BOUNDS_MS`)."""

    period: Period
    start: datetime
    ok: Sequence[int]
    failed: Sequence[int]
    latencies: Sequence[int] = ()

    @property
    def attempts(self) -> int:
        return sum(self.ok) + sum(self.failed)

    @property
    def failures(self) -> int:
        return sum(self.failed)

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
    def p50(self) -> str | None:
        return self._within(0.5)

    @property
    def p95(self) -> str | None:
        return self._within(0.95)

    @property
    def p99(self) -> str | None:
        return self._within(0.99)

    def _within(self, share: float) -> str | None:
        """Return the bound that a share of the attempts keeps."""
        wanted = share * sum(self.latencies)
        reached = zip((*BOUNDS_MS, math.inf), accumulate(self.latencies), strict=False)
        for bound, count in reached:
            if count >= wanted > 0:
                is_last = math.isinf(bound)
                return f"> {BOUNDS_MS[-1]:,} ms" if is_last else f"≤ {bound:,} ms"
        return None

    @property
    def description(self) -> str:
        """The chart as text, for screen readers."""
        name = self.period.key.replace("h", " h").replace("d", " d")
        return (
            f"{sum(self.ok)} successful and {self.failures} failed attempts in {name}"
        )

    @property
    def title(self) -> str:
        return self.period.name

    @property
    def summary(self) -> str:
        return self.words(sum(self.ok), self.failures)

    def words(self, ok: int, failed: int) -> str:
        """Return what the chart says of a part, and of all parts."""
        return f"{ok:,} successful, {failed:,} failed"

    @property
    def width(self) -> int:
        return BAR_WIDTH * self.period.parts

    @property
    def highest(self) -> int:
        """The most attempts of one part."""
        return max(map(sum, zip(self.ok, self.failed, strict=True)), default=0)

    @property
    def top(self) -> str:
        """The top of the axis."""
        return f"{self.highest:,}"

    @property
    def marks(self) -> list[str]:
        """The times below the axis: of the first, the middle and the last part."""
        parts = self.period.parts
        return [self._time(number) for number in (0, parts // 2, parts - 1)]

    @property
    def bars(self) -> list[Bar]:
        counts = enumerate(zip(self.ok, self.failed, strict=True))
        return [self._bar(number, ok, failed) for number, (ok, failed) in counts]

    def _time(self, number: int) -> str:
        at = self.start + number * self.period.part
        if self.period.part >= DAY:
            return f"{at:%m-%d}"
        return f"{at:%H:%M}" if self.period.part <= HOUR else f"{at:%m-%d %H:%M}"

    def _bar(self, number: int, ok: int, failed: int) -> Bar:
        failed_height = _height(failed, self.highest)
        ok_height = min(_height(ok, self.highest), HEIGHT - failed_height)
        top = HEIGHT - ok_height
        text = f"{self._time(number)} UTC: {self.words(ok, failed)}"
        x, failed_y = number * BAR_WIDTH, top - failed_height
        return Bar(x, top, ok_height, failed_y, failed_height, text)


def _height(count: int, highest: int) -> int:
    """Return a height at which even one attempt among many is visible."""
    return max(round(HEIGHT * count / highest), 2) if count else 0


def of_endpoints(
    endpoints: Sequence[Endpoint], *, now: datetime, period: Period = HOURS_24
) -> Mapping[int, Chart]:
    """Return a chart for each endpoint, by its pk, with one query."""
    rows = _rows([endpoint.pk for endpoint in endpoints], period.start(now))
    return {pk: _chart(own, now, period) for pk, own in rows.items()}


def of_endpoint(
    endpoint: Endpoint, *, now: datetime, periods: Sequence[Period]
) -> list[Chart]:
    """Return a chart of an endpoint for each period, with one query."""
    rows = _rows([endpoint.pk], min(period.start(now) for period in periods))
    return [_chart(rows[endpoint.pk], now, period) for period in periods]


def of_all(*, now: datetime, period: Period = HOURS_24) -> Chart:
    """Return the chart of all endpoints together."""
    return _chart(_rows([ALL_ENDPOINTS], period.start(now))[ALL_ENDPOINTS], now, period)


def _rows(
    endpoint_ids: Sequence[int], since: datetime
) -> Mapping[int, list[AttemptHour]]:
    rows: dict[int, list[AttemptHour]] = {pk: [] for pk in endpoint_ids}
    hour = since - (since - EPOCH) % HOUR
    of_them = among(endpoint_ids, of="endpoint_id")
    for row in AttemptHour.objects.filter(of_them, hour__gte=hour):
        rows[row.endpoint_id].append(row)
    return rows


def _chart(rows: Sequence[AttemptHour], now: datetime, period: Period) -> Chart:
    start = period.start(now)
    ok, failed = [0] * period.parts, [0] * period.parts
    latencies = [0] * (len(BOUNDS_MS) + 1)
    for row in rows:
        for at, (successes, failures, *counts) in _numbers(row, period):
            number = (at - start) // period.part
            if 0 <= number < period.parts:
                ok[number] += successes
                failed[number] += failures
                latencies = [sum(pair) for pair in zip(latencies, counts, strict=True)]
    return Chart(period, start, ok, failed, latencies)


def _numbers(
    row: AttemptHour, period: Period
) -> Iterator[tuple[datetime, Sequence[int]]]:
    """Yield the sums of an hour, or of its slots if a part is shorter than an hour."""
    if period.part >= HOUR:
        yield row.hour, (row.ok, row.failed, *row.latencies)
        return
    for slot, numbers in (row.slots or {}).items():
        yield row.hour + int(slot) * SLOT, numbers
