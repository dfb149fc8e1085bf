"""Sums of attempts by endpoint and hour: each attempt counts once, whatever crashes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.webhooks_core.factories import AttemptFactory, DeliveryFactory
from webhooks_core.models import AttemptHour, EngineState
from webhooks_core.models.history import ALL_ENDPOINTS
from webhooks_core.upkeep import rollups
from webhooks_core.upkeep.stats import BOUNDS_MS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]

NOW = datetime(2030, 1, 1, 12, 30, tzinfo=UTC)
LATER = [NOW + minutes * rollups.COMMITTED_AFTER for minutes in range(9)]


@pytest.fixture(autouse=True)
def _state():
    EngineState.objects.get_or_create(pk=1)


def attempt(**fields: Any) -> None:
    AttemptFactory.create(**{"started_at": NOW, "duration_ms": 7, **fields})


def sums() -> list[tuple[int, int]]:
    """Return successes and failures of each endpoint and hour."""
    rows = AttemptHour.objects.order_by("endpoint", "hour").exclude(
        endpoint=ALL_ENDPOINTS
    )
    return list(rows.values_list("ok", "failed"))


def count(*times: datetime) -> list[tuple[int, int]]:
    for now in times:
        rollups.count_attempts(now)
    return sums()


def test_attempts_are_summed_by_endpoint_and_hour():
    first, second = DeliveryFactory.create(), DeliveryFactory.create()
    attempt(delivery=first, outcome="http", duration_ms=10)
    attempt(delivery=first, duration_ms=11)
    attempt(delivery=first, started_at=NOW - timedelta(hours=2))
    attempt(delivery=second, duration_ms=60_000)
    assert count(*LATER[:2]) == [(1, 0), (1, 1), (1, 0)]
    row = AttemptHour.objects.get(
        endpoint=first.endpoint, hour__gte=NOW.replace(minute=0)
    )
    assert row.latencies == [1, 1, *[0] * (len(BOUNDS_MS) - 1)]
    assert AttemptHour.objects.get(endpoint=second.endpoint).latencies[-1] == 1
    attempt(delivery=first, duration_ms=11)
    assert count(*LATER[2:4]) == [(1, 0), (2, 1), (1, 0)]
    row.refresh_from_db()
    assert row.latencies[:3] == [1, 2, 0]


def test_an_attempt_whose_commit_comes_late_is_counted_once():
    delivery = DeliveryFactory.create()
    attempt(delivery=delivery, pk=5)
    assert count(NOW) == []
    attempt(delivery=delivery, pk=3)
    assert count(NOW + rollups.COMMITTED_AFTER / 2) == []
    assert count(LATER[1]) == [(2, 0)]
    assert count(*LATER[2:5]) == [(2, 0)]


def test_a_crash_counts_nothing_twice_and_leaves_nothing_out(monkeypatch):
    attempt()
    count(NOW)
    with monkeypatch.context() as broken:
        broken.setattr(AttemptHour.objects, "bulk_create", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            count(LATER[1])
    assert count(LATER[1]) == [(1, 0)]


def test_what_another_process_has_counted_is_left_to_it(monkeypatch):
    attempt()
    count(NOW)
    real = rollups._sums

    def overtaken(*args: Any) -> list[Any]:
        EngineState.objects.update(attempts_counted=10**6)
        return real(*args)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(rollups, "_sums", overtaken)
        assert count(LATER[1]) == []
    EngineState.objects.update(attempts_counted=0)
    assert count(LATER[1]) == [(1, 0)]


def test_a_long_history_is_counted_in_steps(monkeypatch):
    monkeypatch.setattr(rollups, "AT_ONCE", 2)
    delivery = DeliveryFactory.create()
    for pk in range(1, 6):
        attempt(delivery=delivery, pk=pk)
    assert count(*LATER[:2]) == [(5, 0)]
    assert count(*LATER[2:4]) == [(5, 0)]


def test_all_endpoints_together_have_sums_too():
    for _ in range(2):
        attempt(delivery=DeliveryFactory.create())
        count(*LATER[:2])
    total = AttemptHour.objects.get(endpoint=ALL_ENDPOINTS)
    assert (total.ok, total.failed, sum(total.latencies)) == (2, 0, 2)


def test_a_clock_that_was_set_back_does_not_stop_the_count():
    attempt()
    assert count(LATER[8], NOW) == [(1, 0)]


def test_old_sums_and_attempts_are_left_out():
    delivery = DeliveryFactory.create()
    attempt(delivery=delivery, started_at=NOW - timedelta(days=32))
    attempt(delivery=delivery)
    assert count(*LATER[:2]) == [(1, 0)]
    assert count(NOW + timedelta(days=32)) == []
