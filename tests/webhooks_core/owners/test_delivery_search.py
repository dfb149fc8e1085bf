"""The search in deliveries: each part of the filter, the cursor, and what a page costs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners import changes, delivery_search, id_ranges, replays
from webhooks_core.owners.delivery_search import (
    DeliveryFilter,
    State,
    StatusClass,
    search,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
TYPES = ["thing.made", "thing.lost"]


@pytest.fixture
def rows() -> list[Delivery]:
    """Six deliveries to two endpoints, an event each two hours, and one of another owner."""
    for number in range(2):
        EndpointFactory.create(event_types=TYPES, url=f"http://127.0.0.1:9/{number}")
    EndpointFactory.create(owner="bob")
    for number in range(3):
        with time_machine.travel(NOON + timedelta(hours=2 * number), tick=False):
            publish_event(event_type=TYPES[number % 2])
    publish_event(owner="bob")
    own = Delivery.objects.filter(endpoint__owner="alice").order_by("pk")
    states: tuple[dict[str, object], ...] = (
        {"status": 1, "delivered_at": NOON},
        {"status": 2},
        {},
    )
    for row, state in zip(own, states * 2, strict=True):
        if state:
            changed = {"next_attempt_at": None, **state}
            Delivery.objects.filter(pk=row.pk).update(**changed)
    return list(own.select_related("endpoint"))


def found(endpoints=None, **parts) -> list[int]:
    own = Endpoint.objects.of("plain", "alice") if endpoints is None else endpoints
    page = search(own, DeliveryFilter(**parts), size=100)
    assert page.cursor == ""
    return [item.delivery.pk for item in page.items]


def test_without_a_filter_all_of_the_owner_are_found_newest_first(rows):
    assert found() == [row.pk for row in reversed(rows)]
    one = Endpoint.objects.filter(pk=rows[0].endpoint_id)
    expected = [row.pk for row in rows if row.endpoint_id == rows[0].endpoint_id]
    assert found(one) == expected[::-1]
    assert found(Endpoint.objects.none()) == []


def test_each_part_of_the_filter_narrows(rows):
    pks = [row.pk for row in rows]
    delivered, failed, pending = pks[0::3], pks[1::3], pks[2::3]
    for state, expected in (
        (State.DELIVERED, delivered),
        (State.FAILED, failed),
        (State.PENDING, pending),
        (State.FAILED_UNDELIVERED, failed),
    ):
        assert found(states=frozenset({state})) == expected[::-1]
    both = frozenset({State.PENDING, State.FAILED_UNDELIVERED})
    assert found(states=both) == sorted(failed + pending, reverse=True)
    assert found(event_types=("thing.lost",)) == [pks[3], pks[2]]
    assert found(event_types=("thing.none",)) == []
    assert found(event_id=rows[4].event.public_id) == [pks[5], pks[4]]
    assert found(event_id="evt_\x00") == []


def test_times_are_those_of_the_event(rows, monkeypatch):
    pks = [row.pk for row in rows]
    monkeypatch.setattr(id_ranges, "LATE", timedelta(minutes=1))
    monkeypatch.setattr(id_ranges, "CONCURRENT", 2)
    middle = NOON + timedelta(hours=2)
    assert found(since=middle) == pks[:1:-1]
    assert found(until=middle) == [pks[1], pks[0]]
    assert found(since=middle, until=middle + timedelta(seconds=1)) == [pks[3], pks[2]]
    assert found(since=NOON + timedelta(days=40)) == []
    # Resent much later, its event is as old as before.
    again = replays.resend(rows[1], by=changes.owner("ada"))
    assert found(until=middle) == [again.pk, pks[1], pks[0]]


def test_the_class_of_the_answer_is_that_of_the_latest_attempt(rows):
    failed, pending = rows[1], rows[2]
    Delivery.objects.filter(pk=failed.pk).update(last_error="HTTP 404")
    Delivery.objects.filter(pk=pending.pk).update(last_error="HTTP 503")
    Delivery.objects.filter(pk=rows[0].pk).update(last_error="HTTP 503")
    for status_class, expected in (
        (StatusClass.SUCCESS, [rows[3].pk, rows[0].pk]),
        (StatusClass.CLIENT_ERROR, [failed.pk]),
        (StatusClass.SERVER_ERROR, [pending.pk]),
        (StatusClass.REDIRECT, []),
        (StatusClass.NONE, [rows[5].pk, rows[4].pk]),
    ):
        assert found(status_class=status_class) == expected


def test_what_arrived_by_a_resend_is_failed_but_not_undelivered(rows):
    again = replays.resend(rows[1], by=changes.owner("ada"))
    own = Endpoint.objects.of("plain", "alice")
    [item] = [
        item
        for item in search(own, DeliveryFilter(states=frozenset({State.FAILED}))).items
        if item.delivery.pk == rows[1].pk
    ]
    assert item.resent == "pending"
    assert rows[1].pk not in found(states=frozenset({State.FAILED_UNDELIVERED}))
    assert again.pk in found(states=frozenset({State.PENDING}))


def test_pages_follow_one_another_whatever_is_published_between(rows):
    own = Endpoint.objects.of("plain", "alice")
    seen, cursor = [], ""
    while True:
        page = search(own, DeliveryFilter(), cursor=cursor, size=4)
        seen += [item.delivery.pk for item in page.items]
        publish_event()
        if not (cursor := page.cursor):
            break
    assert seen == [row.pk for row in reversed(rows)]


@pytest.mark.parametrize(
    "wanted",
    [
        DeliveryFilter(states=frozenset({State.DELIVERED})),
        DeliveryFilter(status_class=StatusClass.SERVER_ERROR),
        DeliveryFilter(states=frozenset({State.PENDING, State.FAILED_UNDELIVERED})),
        DeliveryFilter(event_types=("thing.lost",), until=NOON + timedelta(days=1)),
    ],
)
def test_what_one_page_does_not_search_the_next_ones_do(rows, wanted, monkeypatch):
    monkeypatch.setattr(id_ranges, "LATE", timedelta(0))
    monkeypatch.setattr(id_ranges, "CONCURRENT", 0)
    expected = found(**{name: getattr(wanted, name) for name in wanted.__slots__})
    monkeypatch.setattr(delivery_search, "SEARCHED", 1)
    monkeypatch.setattr(delivery_search, "RARE", 0)
    own = Endpoint.objects.of("plain", "alice")
    seen, cursor, pages = [], "", 0
    while pages == 0 or cursor:
        page = search(own, wanted, cursor=cursor, size=1)
        seen += [item.delivery.pk for item in page.items]
        cursor, pages = page.cursor, pages + 1
    assert seen == expected
    # Failed and pending deliveries have indexes, so each page finds one.
    assert pages > len(seen) or State.PENDING in wanted.states


@pytest.mark.parametrize("cursor", ["x", "-1", "1.0", "f" * 16, "\x00", "é"])
def test_another_cursor_is_refused(rows, cursor):
    with pytest.raises(ValueError, match="cursor"):
        search(Endpoint.objects.of("plain", "alice"), DeliveryFilter(), cursor=cursor)


def test_a_page_costs_the_same_queries_and_reads_no_body(rows):
    own = Endpoint.objects.of("plain", "alice")
    wanted = DeliveryFilter(
        states=frozenset({State.FAILED}), event_types=tuple(TYPES), since=NOON
    )
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            search(own, wanted, size=100)
        counts.append(len(queries))
        assert not any('"body"' in query["sql"] for query in queries)
        for _ in range(20):
            publish_event()
        Delivery.objects.pending().fail(error="over")
    assert counts == [6, 6]
