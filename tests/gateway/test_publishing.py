"""Events that callers publish: what is accepted, who gets them, and requests that are repeated."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import orjson
import pytest
from django.utils import timezone

from gateway import configuration, event_schemas, retention
from gateway.configuration.shapes import (
    Configuration,
    DeclaredEventType,
    WebhookSettings,
)
from gateway.models import IdempotencyKey
from gateway.webhooks import profile
from tests.gateway.client import EVENTS, PATH, stripe_accepts
from tests.receiver import receiver
from tests.threads import at_once, together
from tests.webhooks_core.engine import dispatch
from webhooks_core import profiles
from webhooks_core.models import Delivery, Endpoint, Event

pytestmark = pytest.mark.django_db

ORDER = DeclaredEventType(
    "order.created",
    "An order was placed.",
    schema={
        "type": "object",
        "required": ["order_id"],
        "properties": {
            "order_id": {"type": "string", "pattern": "^ord_"},
            "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        },
        "$defs": {
            "line": {
                "type": "object",
                "properties": {"quantity": {"type": "integer", "minimum": 1}},
            }
        },
    },
    sample={"order_id": "ord_0"},
)
ANYTHING = DeclaredEventType("note.written", "A note.")
DATA = {"order_id": "ord_1", "lines": [{"quantity": 2}]}
EVENT = {"type": "order.created", "data": DATA}


@pytest.fixture(autouse=True)
def declared(monkeypatch, settings):
    """Two declared event types, and one of the contract that callers may publish."""
    webhooks = WebhookSettings(
        event_types=(ORDER, ANYTHING), publishable=("drift.detected",)
    )
    monkeypatch.setattr(configuration, "current", lambda: Configuration(webhooks))
    known = profiles.get("gateway")
    profiles.register(
        profile(
            webhooks, quota=100, base_url=settings.BASE_URL, local=True, source="a file"
        )
    )
    yield
    profiles.register(known)


def facts() -> Any:
    tables = (Event, Delivery, IdempotencyKey)
    return [table.objects.count() for table in tables]


@pytest.mark.django_db(transaction=True)
def test_an_event_is_published_and_the_response_says_who_gets_it(acme, globex):
    globex.create()
    acme.create(event_types=["ingest.completed"])
    acme.create(active=False)
    with receiver(204) as subscriber:
        named = acme.create(subscriber.url, event_types=["order.created"])
        everything = acme.create("http://127.0.0.1:9/")
        response = acme.publish(EVENT, headers={"X-Request-Id": "mine"})
        dispatch()
    assert response.status_code == 202
    assert response.json() == {
        "id": Event.objects.get().public_id,
        "duplicate": False,
        "subscriptions": [named["id"], everything["id"]],
    }
    [request] = subscriber.requests
    envelope = orjson.loads(request.body)
    assert (envelope["id"], envelope["type"]) == (
        response.json()["id"],
        "order.created",
    )
    assert (envelope["tenant_id"], envelope["principal_id"]) == ("acme", "ada")
    assert (envelope["data"], envelope["request_id"]) == (DATA, "mine")
    assert stripe_accepts(request, named["secret"])


def test_numbers_of_data_keep_every_digit(acme):
    body = b'{"type": "note.written", "data": {"n": 123456789012345678901234567890, "f": 1.10}}'
    assert acme.call("POST", EVENTS, body).status_code == 202
    stored = bytes(Event.objects.get().body)
    assert b'"data":{"n":123456789012345678901234567890,"f":1.10}' in stored


def test_a_batch_is_published_in_its_order(acme):
    subscription = acme.create()
    batch = [EVENT | {"data": DATA | {"order_id": f"ord_{n}"}} for n in range(3)]
    response = acme.publish({"events": batch})
    assert response.status_code == 202
    stored = Event.objects.order_by("pk")
    assert response.json() == {
        "events": [
            {
                "id": event.public_id,
                "duplicate": False,
                "subscriptions": [subscription["id"]],
            }
            for event in stored
        ]
    }
    ids = [orjson.loads(bytes(event.body))["data"]["order_id"] for event in stored]
    assert ids == ["ord_0", "ord_1", "ord_2"]


NESTED: Any = 1
for _ in range(101):
    NESTED = [NESTED]
NAMES = "1 to 128 of the characters A-Z a-z 0-9 . _ : @ -"
UNKNOWN = (
    "type cannot be published; known are drift.detected, order.created, note.written."
)
NO_BATCHES: list[Any] = [[], {}, [EVENT] * 101]
LARGE = {"type": "note.written", "data": {"a": "x" * 262_144}}


def order(**data: Any) -> dict[str, Any]:
    return {"type": "order.created", "data": data}


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({}, "type is required."),
        ({"type": 5, "data": {}}, "type must be a string."),
        *(
            (EVENT | {"type": name}, UNKNOWN)
            for name in ("no.such", "ingest.completed", "webhook.test")
        ),
        ({"type": "order.created"}, "data is required."),
        (EVENT | {"data": None}, "data must be an object."),
        (EVENT | {"data": []}, "data must be an object."),
        (EVENT | {"id": 7}, "id must be a string."),
        (EVENT | {"id": "a b"}, f"id must have {NAMES}."),
        (order(), 'data: "order_id" is a required property'),
        (order(order_id="x"), 'data.order_id: "x" does not match "^ord_"'),
        (
            order(order_id="ord_1", lines=[{}, {"quantity": 0}]),
            "data.lines[1].quantity: 0 is less than the minimum of 1",
        ),
        (
            {"events": [EVENT, order(order_id=5)]},
            'events[1].data.order_id: 5 is not of type "string"',
        ),
        ({"events": [EVENT, {}]}, "events[1].type is required."),
        ({"events": [EVENT, 5]}, "events[1] must be an object."),
        *(
            ({"events": events}, "events must be an array of 1 to 100 events.")
            for events in NO_BATCHES
        ),
        (
            {"type": "note.written", "data": {"a": NESTED}},
            "data is nested deeper than 100 levels.",
        ),
        ({"events": [LARGE]}, "events[0].data is over 262144 bytes."),
        ({"events": [LARGE] * 4}, "The body is over 1048576 bytes."),
        (b'{"type": "note.written", "data": {"a": 1e999}}', "The body is not JSON"),
        (b'{"type": "note.written", "data": {"a": "\\ud800"}}', "The body is not JSON"),
    ],
)
def test_a_bad_event_is_refused_and_nothing_is_stored(acme, body, detail):
    acme.create()
    before = facts()
    response = acme.call("POST", EVENTS, body, headers={"Idempotency-Key": "k"})
    assert response.status_code == (413 if "bytes." in detail else 400)
    assert response.json()["detail"].startswith(detail)
    assert facts() == before


def test_a_fault_in_a_large_value_is_told_in_short(acme):
    data = {"order_id": ["x" * 100_000]}
    detail = acme.publish(EVENT | {"data": data}).json()["detail"]
    assert len(detail) == event_schemas.MAX_FAULT


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("?dry_run=yes", "dry_run must be true or false."),
        ("?dry_run=", "dry_run must be true or false."),
        ("?dryrun=true", "The query parameter dryrun is unknown."),
    ],
)
def test_a_query_parameter_that_is_wrong_or_unknown_is_refused(acme, query, detail):
    response = acme.publish(EVENT, query)
    assert (response.status_code, response.json()) == (400, {"detail": detail})
    assert not Event.objects.exists()


def test_a_dry_run_says_who_would_get_it_and_stores_nothing(acme):
    subscription = acme.create()
    key = {"Idempotency-Key": "k"}
    response = acme.publish(EVENT | {"id": "one"}, "?dry_run=true", headers=key)
    expected = {"id": None, "duplicate": False, "subscriptions": [subscription["id"]]}
    assert (response.status_code, response.json()) == (200, expected)
    assert facts() == [0, 0, 0]
    first = acme.publish(EVENT | {"id": "one"}, "?dry_run=false").json()
    again = acme.publish({"events": [EVENT | {"id": "one"}]}, "?dry_run=true")
    assert again.json() == {"events": [first | {"duplicate": True}]}


def test_an_id_is_published_once(acme, globex):
    acme.create()
    named = EVENT | {"id": "order-1"}
    first = acme.publish(named).json()
    acme.create()
    assert acme.publish(named).json() == first | {"duplicate": True}
    assert globex.publish(named).json()["duplicate"] is False
    for other in (
        named | {"data": {"order_id": "ord_2"}},
        named | {"type": "note.written"},
    ):
        response = acme.publish({"events": [EVENT, other]})
        assert response.status_code == 422
        assert response.json() == {
            "detail": "events[1].id: another event with this id was published before."
        }
    assert Event.objects.count() == 2
    twice = acme.publish({"events": [EVENT | {"id": "x"}] * 2}).json()["events"]
    assert [each["duplicate"] for each in twice] == [False, True]
    assert twice[0]["id"] == twice[1]["id"]


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (b"1", b"true"),
        (b"0", b"false"),
        (b"18446744073709551617", b"18446744073709551618"),
        (b"0.1", b"0.1000000000000000055511151231257827"),
    ],
)
def test_an_id_with_data_that_differs_is_another_event(acme, first, other):
    body = b'{"type": "note.written", "id": "n", "data": {"x": [%s]}}'
    assert acme.publish(body % first).status_code == 202
    assert acme.publish(body % first).json()["duplicate"] is True
    assert acme.publish(body % other).status_code == 422


def test_the_same_key_and_body_get_the_first_answer(acme, globex):
    acme.create()
    key = {"Idempotency-Key": "a-key"}
    first = acme.publish(EVENT, headers=key).json()
    acme.create()
    spaced = b' {"data": %s, "type": "order.created"}' % orjson.dumps(DATA)
    again = acme.call("POST", EVENTS, spaced, headers=key)
    assert (again.status_code, again.json()) == (202, first | {"duplicate": True})
    assert globex.publish(EVENT, headers=key).json()["duplicate"] is False
    assert Event.objects.count() == 2


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (EVENTS, EVENT | {"data": {"order_id": "ord_2"}}),
        (EVENTS, {"events": [EVENT]}),
        (PATH, {"url": "http://127.0.0.1:9/"}),
    ],
)
def test_the_same_key_for_another_request_is_refused(acme, path, body):
    key = {"Idempotency-Key": "a-key"}
    acme.publish(EVENT, headers=key)
    response = acme.call("POST", path, body, headers=key)
    assert response.status_code == 422
    assert response.json() == {
        "detail": "This Idempotency-Key was used for another request within the last day."
    }
    assert (Event.objects.count(), Endpoint.objects.count()) == (1, 0)


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é"])
@pytest.mark.parametrize("path", [EVENTS, PATH])
def test_a_malformed_key_is_refused(acme, path, key):
    body = EVENT if path == EVENTS else {"url": "http://127.0.0.1:9/"}
    response = acme.call("POST", path, body, headers={"Idempotency-Key": key})
    assert response.status_code == 400
    assert response.json()["detail"].startswith("Idempotency-Key must have 1 to 255")
    assert not Event.objects.exists()
    assert not Endpoint.objects.exists()


def test_a_refused_request_leaves_its_key_free(acme):
    key = {"Idempotency-Key": "a-key"}
    assert acme.publish(EVENT | {"data": {}}, headers=key).status_code == 400
    assert acme.publish(EVENT, headers=key).status_code == 202


def test_a_key_is_kept_for_a_day(acme):
    key = {"Idempotency-Key": "a-key"}
    first = acme.publish(EVENT, headers=key).json()
    age = timedelta(days=1, seconds=1)
    IdempotencyKey.objects.update(created_at=timezone.now() - age)
    second = acme.publish(EVENT, headers=key).json()
    assert second["duplicate"] is False
    assert second["id"] != first["id"]
    acme.publish(EVENT, headers={"Idempotency-Key": "another"})
    IdempotencyKey.objects.filter(key="a-key").update(created_at=timezone.now() - age)
    assert retention.remove_old().idempotency_keys == 1
    assert IdempotencyKey.objects.get().key == "another"


def test_a_repeated_creation_returns_the_first_subscription_with_its_secret(acme):
    key, body = {"Idempotency-Key": "a-key"}, {"url": "http://127.0.0.1:9/"}
    first = acme.call("POST", PATH, body, headers=key)
    acme.patch(first.json(), description="changed")
    again = acme.call("POST", PATH, body, headers=key)
    assert (again.status_code, again.json()) == (201, first.json())
    assert again["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first
    assert first.json()["secret"].startswith("whsec_")
    assert Endpoint.objects.count() == 1
    kept = IdempotencyKey.objects.get()
    assert first.json()["secret"].encode() not in bytes(kept.response)


def test_a_creation_that_is_refused_leaves_its_key_free(acme, settings):
    key = {"Idempotency-Key": "a-key"}
    for url, status in (("http://10.0.0.1/", 400), ("http://127.0.0.1:9/", 201)):
        response = acme.call("POST", PATH, {"url": url}, headers=key)
        assert response.status_code == status


@pytest.mark.django_db(transaction=True)
def test_of_concurrent_requests_with_one_key_one_publishes(acme):
    acme.create()
    key = {"Idempotency-Key": "a-key"}

    def publish() -> Any:
        response = acme.publish(EVENT, headers=key)
        return response.status_code, response.json()["id"], response.json()["duplicate"]

    answers = at_once(4, publish)
    assert {status for status, *_ in answers} == {202}
    assert len({event_id for _, event_id, _ in answers}) == 1
    assert sorted(duplicate for *_, duplicate in answers) == [False, True, True, True]
    assert Event.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_concurrent_batches_in_other_orders_all_succeed(acme):
    for number in range(2):
        types = [("order.created", "note.written")[number]]
        acme.create(event_types=types)
    Endpoint.objects.update(in_order=True)
    note = {"type": "note.written", "data": {}}
    batches = [[EVENT, note], [note, EVENT]]

    calls = [partial(acme.publish, {"events": batch * 5}) for batch in batches * 2]
    assert {response.status_code for response in together(*calls)} == {202}
    assert Event.objects.count() == 40


def test_subscriptions_may_name_declared_types(acme):
    subscription = acme.create(event_types=["note.written"])
    assert acme.patch(subscription, event_types=["order.created"])["event_types"] == [
        "order.created"
    ]
    response = acme.call(
        "POST", PATH, {"url": "http://127.0.0.1:9/", "event_types": ["x.y"]}
    )
    assert "order.created, note.written." in response.json()["detail"]


def test_nothing_is_sent_where_webhooks_are_switched_off(acme):
    acme.create()
    profiles.register(replace(profiles.get("gateway"), enabled=False))
    response = acme.publish({"type": "note.written", "data": {}})
    assert (response.status_code, response.json()["subscriptions"]) == (202, [])
    assert facts() == [1, 0, 0]
