"""Charts: each attempt is in the part of its time, from 5 minutes to a day."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from tests.webhooks_core.admin.endpoint_pages import attempts
from tests.webhooks_core.engine import count_attempts
from tests.webhooks_core.factories import (
    AttemptFactory,
    DeliveryFactory,
    EndpointFactory,
)
from webhooks_core.models import AttemptHour
from webhooks_core.owners import charts
from webhooks_core.owners.charts import HEIGHT, HOURS_24, PERIODS, Chart
from webhooks_core.upkeep import rollups

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]

NOON = "2030-01-01T12:30:00Z"


def chart(ok: list[int], failed: list[int]) -> Chart:
    return Chart(HOURS_24, timezone.now(), ok, failed)


@time_machine.travel(NOON, tick=False)
def test_a_day_counts_its_attempts_by_hour_and_forgets_older_ones():
    target, other = EndpointFactory.create(), EndpointFactory.create()
    attempts(target, "http timeout ok", hours_ago=0, ms=100)
    attempts(target, "ok", hours_ago=23, ms=300)
    attempts(target, "ok", hours_ago=24, ms=9000)
    attempts(other, "ok")
    count_attempts()
    now = timezone.now()
    by_endpoint = charts.of_endpoints([target, other], now=now)
    day = by_endpoint[target.pk]
    assert (day.ok[-1], day.failed[-1]) == (1, 2)
    assert (day.ok[0], day.failed[0]) == (1, 0)
    assert day.attempts == 4
    assert day.success == "50 %"
    assert (day.p50, day.p95, day.p99) == ("≤ 100 ms", "≤ 500 ms", "≤ 500 ms")
    others = by_endpoint[other.pk]
    assert (others.attempts, others.success) == (1, "100 %")
    assert charts.of_all(now=now).attempts == 5
    assert charts.of_endpoints([], now=now) == {}


@pytest.mark.parametrize("period", PERIODS.values())
def test_each_part_of_a_period_has_the_attempts_of_its_time(period):
    with time_machine.travel(NOON, tick=False):
        now, delivery = timezone.now(), DeliveryFactory.create()
        for number in range(period.parts + 2):
            started = now - number * period.part
            AttemptFactory.create(delivery=delivery, started_at=started, number=number)
        count_attempts()
        shown = charts.of_endpoints([delivery.endpoint], now=now, period=period)
    day = shown[delivery.endpoint_id]
    assert list(day.ok) == [1] * period.parts
    assert sum(day.latencies) == period.parts
    assert day.start == now - (now - charts.EPOCH) % period.part - period.part * (
        period.parts - 1
    )
    assert len(day.marks) == 3


@time_machine.travel(NOON, tick=False)
def test_the_slots_of_an_hour_are_removed_when_no_chart_shows_them():
    now, delivery = timezone.now(), DeliveryFactory.create()
    AttemptFactory.create(delivery=delivery, started_at=now)
    count_attempts()
    rows = AttemptHour.objects.filter(endpoint=delivery.endpoint)
    assert rows.get().slots == {"6": [1, 0, *rows.get().latencies]}
    rollups.count_attempts(now + rollups.SLOTS_KEPT + timedelta(hours=1))
    assert (rows.get().slots, rows.get().ok) == (None, 1)


def test_sums_of_an_earlier_version_have_no_slots_and_go_on():
    now, delivery = timezone.now(), DeliveryFactory.create()
    AttemptFactory.create(delivery=delivery, started_at=now)
    count_attempts()
    AttemptHour.objects.update(slots=None)
    AttemptFactory.create(delivery=delivery, started_at=now, number=2)
    count_attempts()
    hour = charts.of_all(now=now, period=PERIODS["1h"])
    assert (hour.attempts, charts.of_all(now=now).attempts) == (1, 2)


def test_a_latency_above_all_bounds_is_told_as_such():
    target = EndpointFactory.create()
    attempts(target, "timeout", ms=60_000)
    count_attempts()
    day = charts.of_endpoints([target], now=timezone.now())[target.pk]
    assert day.p95 == "> 10,000 ms"


def test_one_failure_among_many_is_always_visible():
    day = chart([0] * 23 + [99_999], [0] * 23 + [1])
    assert day.success == "99.9 %"
    last = day.bars[-1]
    assert last.failed_height == 2
    assert last.ok_height + last.failed_height == HEIGHT
    assert all(bar.ok_height == bar.failed_height == 0 for bar in day.bars[:-1])


def test_no_attempts_make_an_empty_chart():
    nothing = chart([0] * 24, [0] * 24)
    assert (nothing.success, nothing.p50, nothing.highest) == (None, None, 0)
    assert {bar.ok_height for bar in nothing.bars} == {0}


def test_an_unknown_period_is_the_last_day():
    assert charts.period_of("1h").name == "1 hour"
    assert charts.period_of("x\0") is HOURS_24
