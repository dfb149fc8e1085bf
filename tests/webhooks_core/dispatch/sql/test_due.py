"""The deliveries that a claim reads: the earliest of each queue, and no row more than asked for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.webhooks_core.factories import (
    DeliveryFactory,
    EndpointFactory,
    EventFactory,
)
from tests.webhooks_core.reading import rows_read, vacuum
from webhooks_core.dispatch.sql import deliveries as module
from webhooks_core.dispatch.sql.deliveries import ClaimLimit, due_deliveries
from webhooks_core.models import Delivery

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]

NOW = timezone.now()


def make(*minutes: int) -> int:
    """Create a queue with a delivery due at each of these times, of events in this order."""
    endpoint = EndpointFactory.create()
    for minute in minutes:
        at = NOW + timedelta(minutes=minute)
        DeliveryFactory.create(endpoint=endpoint, next_attempt_at=at)
    return endpoint.pk


def read(*limits: ClaimLimit) -> list[tuple[int, int, bool]]:
    """Return queue, minute and whether it is later, of each delivery that is read."""
    times = dict(Delivery.objects.values_list("pk", "next_attempt_at"))
    return [
        (
            due.queue,
            round(((times[due.pk] or NOW) - NOW).total_seconds() / 60),
            bool(due.later),
        )
        for due in due_deliveries(limits, NOW)
    ]


@pytest.mark.parametrize("per_query", [1, 100])
def test_each_queue_gives_its_earliest_and_one_more_than_its_limit(
    monkeypatch, per_query
):
    monkeypatch.setattr(module, "QUEUES_PER_QUERY", per_query)
    first, second, third = make(-1, -3, -2), make(5, -4), make(7, -9, -8)
    Delivery.objects.filter(endpoint=first, next_attempt_at=NOW).update(claimed_by=1)
    due = read(
        ClaimLimit(second, 4),
        ClaimLimit(first, 1),
        ClaimLimit(third, 1),
    )
    assert due == [
        *((second, -4, False), (second, 5, True)),
        *((first, -3, False), (first, -2, False)),
        *((third, -9, False), (third, -8, False)),
    ]


def test_claimed_and_ended_deliveries_are_left_out():
    queue = make(-3, -2, -1)
    claimed, failed, _ = Delivery.objects.order_by("pk")
    Delivery.objects.filter(pk=claimed.pk).update(claimed_by=1)
    Delivery.objects.filter(pk=failed.pk).fail(error="gone")
    assert read(ClaimLimit(queue, 5)) == [(queue, -1, False)]


def test_nothing_is_read_of_no_queue():
    assert read() == []


@pytest.mark.skipif(connection.vendor == "sqlite", reason="reads PostgreSQL's plans")
def test_a_claim_reads_an_index_range_of_each_queue():
    endpoints = [EndpointFactory.create(owner=owner) for owner in ("a", "b", "c")]
    events = EventFactory.create_batch(200)
    for endpoint in endpoints:
        Delivery.objects.bulk_create(
            DeliveryFactory.build(endpoint=endpoint, event=event) for event in events
        )
    vacuum("webhooks_core_delivery", "webhooks_core_event")
    rooms = (1, 4, 10)  # PostgreSQL rounds the average
    limits = [
        ClaimLimit(endpoint.pk, room)
        for endpoint, room in zip(endpoints, rooms, strict=True)
    ]
    with CaptureQueriesContext(connection) as statements:
        assert len(due_deliveries(limits, NOW)) == sum(rooms) + len(rooms)
    [statement] = statements
    for table in ("webhooks_core_delivery", "webhooks_core_event"):
        assert rows_read(statement["sql"], table) <= sum(rooms) + len(rooms)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {statement['sql']}")
        assert any(
            "Index Scan using delivery_due " in line for (line,) in cursor.fetchall()
        )
