"""Delivery records: their fields, their pages, and what they cost."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.products.product import RECORDING
from tests.webhooks_core.engine import dispatch
from webhooks_core.models import Delivery
from webhooks_core.times import iso

pytestmark = pytest.mark.django_db

# What no query parameter that counts may be.
WRONG_COUNTS = [
    *("", "0", "00", "-1", "x", "1.0", "1e3", "+1", "%201", "1%20", "%00", "1%00"),
    *("%EF%BC%91", "%D9%A1", "%ED%A0%80", "%ff", "0x1", "1_0", "true", "null"),
    *("[]", "NaN"),
]


@pytest.mark.spec("recording", "Delivery record fields")
@pytest.mark.spec(
    "recording",
    "event_id has the prefix evt_",
    "delivered_at is empty until delivery succeeds",
)
def test_a_waiting_delivery_has_exactly_the_fields_of_the_spec(product, mine):
    created = mine.new_id()
    event = mine.publish()
    [record] = mine.get(f"/{created}/deliveries")
    delivery = Delivery.objects.get()
    first = {"id": delivery.public_id, "event_id": event.public_id}
    first |= {"event_type": product.event_type}
    last = {"created_at": iso(delivery.created_at)}
    if product is RECORDING:
        first |= {"status": 0, "attempts": 0, "last_error": "", "delivered_at": ""}
        expected = {"id": "", "endpoint_id": created} | first | last
    else:
        first |= {"status": "attempting", "attempts": 0, "last_error": ""}
        assert delivery.next_attempt_at
        times = {"next_attempt_at": iso(delivery.next_attempt_at), "delivered_at": None}
        expected = first | times | last
    assert list(record.items()) == list(expected.items())
    assert (record["id"][:4], record["event_id"][:4]) == ("dlv_", "evt_")


@pytest.mark.spec("recording", "page (default 1), page_size (default 20, max 100)")
def test_pages_are_newest_first(mine):
    created = mine.new_id()
    for number in range(103):
        mine.publish(n=number)
    newest_first = Delivery.objects.order_by("-id").values_list("public_id", flat=True)
    for query, expected in (
        ("", range(20)),
        ("?page=1", range(20)),
        ("?page=2", range(20, 40)),
        ("?page=6", range(100, 103)),
        ("?page=7", []),
        ("?page=999999999999999999999999", []),
        ("?page=" + "9" * 5000, []),
        ("?page_size=1", range(1)),
        ("?page_size=100", range(100)),
        ("?page_size=101", range(100)),
        ("?page_size=" + "9" * 30, range(100)),
        ("?page=2&page_size=100", range(100, 103)),
        ("?page=0002&page_size=0050", range(50, 100)),
        ("?page=3&page=2", range(20, 40)),
        ("?unknown=x", range(20)),
    ):
        ids = [record["id"] for record in mine.get(f"/{created}/deliveries{query}")]
        assert ids == [newest_first[at] for at in expected], query


@pytest.mark.parametrize("value", WRONG_COUNTS)
@pytest.mark.spec("recording", "page (default 1), page_size (default 20, max 100)")
def test_wrong_pages_are_refused(product, mine, value):
    created = mine.new_id()
    for name in ("page", "page_size"):
        response = mine.call("GET", f"/{created}/deliveries?{name}={value}")
        assert name in product.error(response, 400)


def test_records_are_those_of_one_subscription(mine):
    first, second = mine.new_id(), mine.new_id()
    mine.publish()
    [record], [other] = (mine.get(f"/{it}/deliveries") for it in (first, second))
    assert record["event_id"] == other["event_id"]
    assert record["id"] != other["id"]


def test_lists_cost_the_same_queries_however_long_and_read_no_bodies(mine):
    created = mine.new_id()
    lists = ("", f"/{created}/deliveries?page_size=100")
    mine.get()  # the first use of a token is stored
    counts = []
    for number in (1, 30):
        for _ in range(number):
            mine.publish()
        with CaptureQueriesContext(connection) as queries:
            for address in lists:
                mine.get(address)
        counts.append(len(queries))
        assert not any('"body"' in query["sql"] for query in queries)
        if mine.endpoints.count() < 3:
            mine.create()
    # The list; the subscription and its records. Recording looks up the token each time.
    assert counts == [5, 5] if mine.product is RECORDING else [3, 3]


@pytest.mark.django_db(transaction=True)
@pytest.mark.spec(
    "recording",
    "attempts count failures before any HTTP request too",
    "a timeout or a failure before the request is retried too",
)
def test_a_refused_connection_is_an_attempt_and_is_retried(mine, free_port):
    created = mine.new_id(url=f"http://127.0.0.1:{free_port}/")
    mine.publish()
    assert dispatch() == 1
    [record] = mine.get(f"/{created}/deliveries")
    assert record["attempts"] == 1
    assert record["last_error"] == "the connection was refused"
    assert Delivery.objects.get().next_attempt_at
