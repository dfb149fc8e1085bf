"""Delivery records: their fields, their pages, and what they cost."""

from datetime import timedelta

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.clock import travel
from tests.products.product import RECORDING, WRONG_COUNTS
from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import DeliveryFactory
from webhooks_core.models import Delivery
from webhooks_core.times import iso

pytestmark = pytest.mark.django_db


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
    of = {"event": mine.publish(), "endpoint": mine.endpoints.get()}
    DeliveryFactory.reset_sequence(1)  # the event's own delivery has replay number 0
    Delivery.objects.bulk_create(DeliveryFactory.build_batch(102, **of))
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
        # A look-up of the token is remembered for some seconds.
        counts.append(sum("personaltoken" not in query["sql"] for query in queries))
        assert not any('"body"' in query["sql"] for query in queries)
        if mine.endpoints.count() < 3:
            mine.create()
    assert counts == [3, 3]  # the list; the subscription and its records


@pytest.mark.django_db(transaction=True)
@pytest.mark.spec(
    "recording",
    "attempts count failures before any HTTP request too",
    "a timeout or a failure before the request is retried too",
)
def test_a_refused_connection_is_an_attempt_and_is_retried(mine, free_port):
    created = mine.new_id(url=f"http://127.0.0.1:{free_port}/")
    mine.publish()
    with travel(timezone.now(), tick=False):  # no retry comes due
        assert dispatch() == 1
    [record] = mine.get(f"/{created}/deliveries")
    assert record["attempts"] == 1
    assert record["last_error"] == "the connection was refused"
    assert Delivery.objects.get().next_attempt_at


# ── To a real receiver ──────────────────────────────────────────────────────────────


@pytest.mark.django_db(transaction=True)
@pytest.mark.spec("recording", "attempt fails: attempts, last_error, retry in a minute")
@pytest.mark.spec(
    "recording",
    "consecutive_failures counts failed attempts including retries",
    "consecutive_failures resets after a success",
    "updated_at advances on every delivery attempt",
    "last_error is the latest failure's reason",
    "at-least-once: a retry carries the same event id",
    "2xx within 5 seconds: delivered, delivered_at set, failures reset",
)
@pytest.mark.spec("gateway", "Delivery semantics 1 and 2")
@pytest.mark.spec(
    "gateway",
    "the event id is stable across retries, prefix evt_",
    "2xx: delivered, no further attempts",
    "failure below max_attempts: retry after exponential backoff",
)
def test_a_delivery_is_retried_with_one_body_until_it_succeeds(product, mine):
    pauses = {"recording": (60, 300), "gateway": (0.5, 1)}[product.name]
    errors = ("HTTP 500", "HTTP 503", "HTTP 503")  # the last one is kept
    attempted = {"recording": "updated_at", "gateway": "last_attempt_at"}[product.name]
    with receiver(500, 503, 204) as server:
        created = mine.create(url=server.url)
        mine.publish()
        for number, error in enumerate(errors, start=1):
            due = Delivery.objects.get().next_attempt_at
            assert due
            with travel(due + timedelta(seconds=1), tick=False):
                assert dispatch() == 1
                now = timezone.now()
            [record] = mine.get(f"/{created[product.id_field]}/deliveries")
            is_last = number == len(errors)
            status = product.statuses[1 if is_last else 0]
            assert (record["status"], record["attempts"]) == (status, number)
            assert (record["last_error"], bool(record["delivered_at"])) == (
                error,
                is_last,
            )
            [item] = mine.get()
            assert item[attempted] == iso(now)
            failures = 0 if is_last else number
            assert mine.endpoints.get().consecutive_failures == failures
            assert item.get("consecutive_failures", failures) == failures
            due = Delivery.objects.get().next_attempt_at
            if is_last:
                assert due is None
            else:
                assert due
                pause = (due - now).total_seconds()
                assert pauses[number - 1] <= pause <= pauses[number - 1] * 1.1
    assert len({request.body for request in server.requests}) == 1
    assert len({product.id_of(request) for request in server.requests}) == 1
    assert len({product.verify(it, created["secret"]) for it in server.requests}) == 3


@pytest.mark.django_db(transaction=True)
@pytest.mark.spec("recording", "up to 5 retries, then terminal failure (2)")
@pytest.mark.spec(
    "recording", "delivery status: 0 pending, 1 delivered, 2 terminal failure"
)
@pytest.mark.spec("gateway", "max_attempts reached: failed, failure is logged")
def test_after_its_last_attempt_a_delivery_has_failed(product, mine, caplog):
    attempts = {"recording": 6, "gateway": 3}[product.name]
    with receiver(500) as server:
        created = mine.new_id(url=server.url)
        mine.publish()
        while due := Delivery.objects.get().next_attempt_at:
            with travel(due + timedelta(seconds=1)):
                assert dispatch() == 1
    [record] = mine.get(f"/{created}/deliveries")
    assert (record["status"], record["attempts"]) == (product.statuses[2], attempts)
    assert not record["delivered_at"]
    assert len(server.requests) == attempts
    logged = [line.msg for line in caplog.records if isinstance(line.msg, dict)]
    [facts] = [line for line in logged if line["event"] == "delivery failed"]
    assert (facts["delivery"], facts["endpoint"]) == (record["id"], created)


@pytest.mark.django_db(transaction=True)
@pytest.mark.spec("recording", "test queues a signed event of type webhook.ping")
@pytest.mark.spec("gateway", "POST …/{id}/test: send a synthetic test event")
def test_a_test_event_arrives_signed(product, mine):
    with receiver(204) as server:
        created = mine.create(url=server.url, **{product.events: []})
        address = f"/{created[product.id_field]}/test"
        event_id = mine.call("POST", address).json()["event_id"]
        assert dispatch() == 1
    [request] = server.requests
    product.verify(request, created["secret"])
    assert request.headers[f"X-{product.name.title()}-Event"] == product.ping
    assert orjson.loads(request.body)["id"] == event_id
