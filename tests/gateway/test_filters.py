"""Filters of subscriptions: written, shown, and obeyed when an event is published."""

from typing import Any

import orjson
import pytest

from gateway import static_subscriptions
from gateway.event_types import EVENT_TYPES
from webhooks_core.models import Delivery

pytestmark = pytest.mark.django_db

ABOVE = {"data": {"value": {"$gt": 0.5}}}


def publish(acme, value: float) -> list[str]:
    data = dict(EVENT_TYPES["drift.detected"].sample) | {"value": value}
    response = acme.publish({"type": "drift.detected", "data": data})
    assert response.status_code == 202, response.content
    ids: list[str] = response.json()["subscriptions"]
    return ids


def test_a_filter_is_written_shown_changed_and_removed(acme):
    subscription = acme.create(filter=ABOVE)
    assert list(subscription)[-1] == "filter"
    assert subscription["filter"] == ABOVE
    assert acme.get(f"/{subscription['id']}")["filter"] == ABOVE
    other = {"principal_id": "ada"}
    assert acme.patch(subscription, filter=other)["filter"] == other
    assert acme.patch(subscription, description="x")["filter"] == other
    nothings: list[Any] = [{}, None]
    for nothing in nothings:
        acme.patch(subscription, filter=other)
        assert acme.patch(subscription, filter=nothing)["filter"] is None
    assert acme.create()["filter"] is None


def test_an_event_goes_to_the_subscriptions_whose_filter_matches(acme):
    everything = acme.create()
    above = acme.create(filter=ABOVE)
    acme.create(filter={"principal_id": "bob"})
    of_ada = acme.create(filter={"principal_id": "ada", "tenant_id": "acme"})
    assert publish(acme, 0.9) == [everything["id"], above["id"], of_ada["id"]]
    assert publish(acme, 0.1) == [everything["id"], of_ada["id"]]
    assert Delivery.objects.count() == 5


def test_a_test_event_passes_any_filter(acme):
    subscription = acme.create(filter=ABOVE)
    assert acme.test(subscription).status_code == 202
    assert Delivery.objects.count() == 1


def test_a_static_subscription_can_have_a_filter(acme, load):
    row = "{tenant_id: acme, url: 'http://127.0.0.1:9/', secret: s, filter: %s}"

    def synchronise(text: str) -> int:
        current = load(f"webhooks: {{subscriptions: [{row % text}]}}")
        return static_subscriptions.sync(current)

    assert synchronise(orjson.dumps(ABOVE).decode()) == 1
    assert publish(acme, 0.1) == []
    assert len(publish(acme, 0.9)) == 1
    assert [synchronise("{a: 2.0e+18}") for _ in range(2)] == [1, 0]
    [subscription] = acme.get()["items"]
    assert subscription["filter"] == {"a": 2e18}
