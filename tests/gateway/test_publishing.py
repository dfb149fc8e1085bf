"""Events that callers publish: what is accepted, who gets them, and requests that are repeated."""

from datetime import timedelta
from typing import Any

import orjson
import pytest
from django.utils import timezone

from gateway import configuration, retention
from gateway.configuration.shapes import (
    Configuration,
    DeclaredEventType,
    WebhookSettings,
)
from gateway.models import IdempotencyKey
from gateway.webhooks import profile
from tests.gateway.client import EVENTS, PATH, stripe_accepts
from tests.receiver import receiver
from tests.threads import at_once
from tests.webhooks_core.engine import dispatch
from webhooks_core import profiles
from webhooks_core.models import Delivery, Event

pytestmark = pytest.mark.django_db

DATA: dict[str, Any] = {"order_id": "ord_1", "lines": [{"quantity": 2}]}
EVENT = {"type": "order.created", "data": DATA}
KEY = {"Idempotency-Key": "a-key"}


@pytest.fixture(autouse=True)
def declared(monkeypatch, settings):
    """A declared event type, and one of the contract that callers may publish."""
    order = DeclaredEventType("order.created", "An order was placed.", sample=DATA)
    webhooks = WebhookSettings(event_types=(order,), publishable=("drift.detected",))
    monkeypatch.setattr(configuration, "current", lambda: Configuration(webhooks))
    known = profiles.get("gateway")
    profiles.register(
        profile(webhooks, quota=100, base_url=settings.BASE_URL, local=True)
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
    assert envelope["id"] == response.json()["id"]
    assert (envelope["tenant_id"], envelope["principal_id"]) == ("acme", "ada")
    assert (envelope["data"], envelope["request_id"]) == (DATA, "mine")
    assert stripe_accepts(request, named["secret"])


NESTED: Any = 1
for _ in range(252):
    NESTED = [NESTED]
UNKNOWN = "type cannot be published; known are drift.detected, order.created."


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        *(
            (EVENT | {"type": name}, UNKNOWN)
            for name in ("no.such", "ingest.completed", "webhook.test")
        ),
        (EVENT | {"data": []}, "data must be an object."),
        (EVENT | {"data": {"a": NESTED}}, "data is nested too deeply."),
        (EVENT | {"data": {"a": "x" * 262_144}}, "data is over 262144 bytes."),
        (EVENT | {"more": "x" * 524_288}, "The body is over 524288 bytes."),
        (b'{"type": "order.created", "data": {"a": 1e999}}', "The body is not JSON"),
    ],
)
def test_a_bad_event_is_refused_and_nothing_is_stored(acme, body, detail):
    acme.create()
    before = facts()
    response = acme.call("POST", EVENTS, body, headers=KEY)
    assert response.status_code == (413 if "bytes." in detail else 400)
    assert response.json()["detail"].startswith(detail)
    assert facts() == before


def test_the_same_key_and_body_get_the_first_answer_and_another_body_is_refused(
    acme, globex
):
    acme.create()
    first = acme.publish(EVENT, headers=KEY).json()
    acme.create()
    spaced = b' {"data": %s, "type": "order.created"}' % orjson.dumps(DATA)
    again = acme.call("POST", EVENTS, spaced, headers=KEY)
    assert (again.status_code, again.json()) == (202, first | {"duplicate": True})
    assert globex.publish(EVENT, headers=KEY).json()["duplicate"] is False
    for other in ({"data": {"order_id": "ord_2"}}, {"type": "drift.detected"}):
        refused = acme.publish(EVENT | other, headers=KEY)
        assert refused.status_code == 422
        assert refused.json()["detail"].startswith("This Idempotency-Key was used for")
    assert Event.objects.count() == 2


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é"])
def test_a_malformed_key_is_refused(acme, key):
    response = acme.publish(EVENT, headers={"Idempotency-Key": key})
    assert response.status_code == 400
    assert response.json()["detail"].startswith("Idempotency-Key must have 1 to 255")
    assert not Event.objects.exists()


def test_a_key_is_kept_for_a_day(acme):
    first = acme.publish(EVENT, headers=KEY).json()
    age = timedelta(days=1, seconds=1)
    IdempotencyKey.objects.update(created_at=timezone.now() - age)
    second = acme.publish(EVENT, headers=KEY).json()
    assert second["duplicate"] is False
    assert second["id"] != first["id"]
    acme.publish(EVENT, headers={"Idempotency-Key": "another"})
    IdempotencyKey.objects.filter(key="a-key").update(created_at=timezone.now() - age)
    assert retention.remove_old() == 1
    assert IdempotencyKey.objects.get().key == "another"


def test_a_key_means_nothing_at_the_creation_of_a_subscription(acme):
    body = {"url": "http://127.0.0.1:9/"}
    first, second = (acme.call("POST", PATH, body, headers=KEY) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] != second.json()["id"]
    assert not IdempotencyKey.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_concurrent_requests_with_one_key_one_publishes(acme):
    acme.create()

    def publish() -> Any:
        response = acme.publish(EVENT, headers=KEY)
        return response.status_code, response.json()["id"], response.json()["duplicate"]

    answers = at_once(4, publish)
    assert {status for status, *_ in answers} == {202}
    assert len({event_id for _, event_id, _ in answers}) == 1
    assert sorted(duplicate for *_, duplicate in answers) == [False, True, True, True]
    assert Event.objects.count() == 1


def test_subscriptions_may_name_declared_types(acme):
    subscription = acme.create(event_types=["order.created"])
    assert subscription["event_types"] == ["order.created"]
    body = {"url": "http://127.0.0.1:9/", "event_types": ["x.y"]}
    response = acme.call("POST", PATH, body)
    assert response.json()["detail"].endswith("order.created.")
