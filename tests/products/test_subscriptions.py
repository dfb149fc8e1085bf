"""Subscriptions from creation to deletion: what both products have in common."""

import orjson
import pytest

from tests.products.product import URL
from webhooks_core.api.views import SubscriptionViewSet
from webhooks_core.models import Delivery, Endpoint

pytestmark = pytest.mark.django_db


@pytest.mark.spec("gateway", "GET /v1/webhooks/subscriptions: list")
def test_the_list_is_the_owner_s_own_newest_first(product, mine, theirs):
    assert mine.get() == []
    created = [mine.new_id() for _ in range(3)]
    theirs.create()
    assert [item["id"] for item in mine.get()] == created[::-1]


@pytest.mark.spec("recording", "events: duplicates collapse, order kept")
def test_events_are_kept_once_each_in_the_order_given(product, mine):
    other = {"recording": product.ping, "gateway": "drift.detected"}[product.name]
    events = [other, product.event_type, other]
    assert mine.create(**{product.events: events})[product.events] == events[:2]


def test_a_deleted_subscription_is_absent_and_its_pending_deliveries_failed(
    product, mine
):
    address = f"/{mine.new_id()}"
    mine.publish()
    assert mine.call("DELETE", address).status_code in {200, 204}
    assert mine.get() == []
    delivery = Delivery.objects.get()
    assert delivery.status == Delivery.Status.FAILED
    assert delivery.last_error == "endpoint deleted"
    message = product.error(mine.call("DELETE", address), 404)
    assert message == "There is no such subscription."
    mine.publish()
    assert Delivery.objects.count() == 1


@pytest.mark.parametrize(
    ("method", "body"), [("PATCH", {"url": URL}), ("DELETE", None)]
)
def test_what_another_call_deletes_meanwhile_is_404(
    product, mine, monkeypatch, method, body
):
    address = f"/{mine.new_id()}"
    row = mine.endpoints.get()
    mine.call("DELETE", address)
    monkeypatch.setattr(SubscriptionViewSet, "get_object", lambda _: row)
    product.error(mine.call(method, address, body), 404)
    assert Endpoint.objects.get().url == URL


@pytest.mark.spec("recording", "test: 200 {event_id, queued: true}")
@pytest.mark.spec("gateway", "POST …/{id}/test: send a synthetic test event")
@pytest.mark.parametrize("has_events", [False, True])
def test_a_test_event_goes_to_that_subscription_alone_whatever_its_events(
    product, mine, has_events
):
    tested = mine.new_id(**{product.events: [product.event_type] * has_events})
    mine.create()
    response = mine.call("POST", f"/{tested}/test")
    assert response.status_code == {"recording": 200, "gateway": 202}[product.name]
    delivery = Delivery.objects.select_related("event", "endpoint").get()
    queued = {"event_id": delivery.event.public_id, "queued": True}
    assert response.json() == queued
    assert delivery.endpoint.public_id == tested
    body = orjson.loads(delivery.event.body)
    assert (body["id"], body["type"]) == (queued["event_id"], product.ping)
    assert list(body["data"].values()) == [tested]
    assert body.get("principal_id", "ada") == "ada"  # the caller, of the gateway
