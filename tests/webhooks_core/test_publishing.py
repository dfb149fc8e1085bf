"""publish(): with the caller's transaction or not at all, and to whom."""

import orjson
import pytest
from django.db import transaction
from django.utils import timezone

from tests.webhooks_core.engine import only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.dispatch import notify
from webhooks_core.models import Delivery, Endpoint, EndpointQueue, Event
from webhooks_core.publishing import UnknownEventTypeError, publish

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def test_nothing_is_stored_or_called_when_the_caller_rolls_back(calls):
    EndpointFactory.create()
    with transaction.atomic():
        publish_event()
        assert Event.objects.count() == 1
        transaction.set_rollback(True)
    assert (Event.objects.count(), Delivery.objects.count()) == (0, 0)
    assert EndpointQueue.objects.get().next_due_at is None
    assert calls == []


def test_nothing_is_called_before_the_commit(calls):
    EndpointFactory.create()
    with transaction.atomic():
        publish_event()
        assert calls == []
        assert EndpointQueue.objects.get().next_due_at is None
    assert calls == ["webhooks_core.tasks.dispatch"]
    assert EndpointQueue.objects.get().next_due_at is not None


def test_a_failing_wake_up_fails_no_caller(monkeypatch):
    def explode(*_: object, **__: object) -> None:
        raise RuntimeError("anything")

    monkeypatch.setattr(notify, "notify", explode)
    EndpointFactory.create()
    publish_event()
    assert only_delivery().status == Delivery.Status.PENDING


def test_the_body_is_serialised_once():
    EndpointFactory.create()
    stored = publish(
        profile="plain", owner="alice", event_type="thing.made", data={"t": "é\0\u2028"}
    )
    body = bytes(Event.objects.get().body)
    assert body == bytes(stored.body)
    assert Event.objects.get().size == len(body)
    parsed = orjson.loads(body)
    assert parsed["id"] == stored.public_id
    assert parsed["data"] == {"t": "é\0\u2028"}
    assert parsed["created_at"].endswith("Z")


@pytest.mark.parametrize(
    ("_case", "fields"),
    [
        ("deleted", {"deleted_at": timezone.now(), "slot": None}),
        ("inactive", {"active": False}),
        ("disabled", {"status": Endpoint.Status.DISABLED}),
        ("of another owner", {"owner": "bob"}),
        ("of another product", {"profile": "other"}),
        ("for another type", {"event_types": ["thing.lost"]}),
        ("for no type", {"event_types": []}),
    ],
)
def test_endpoints_that_get_no_delivery(_case, fields, calls):
    EndpointFactory.create()
    Endpoint.objects.update(**fields)
    publish_event()
    assert Event.objects.count() == 1
    assert not Delivery.objects.exists()
    assert not calls


def test_an_unknown_type_stores_nothing():
    EndpointFactory.create()
    with pytest.raises(UnknownEventTypeError):
        publish_event(event_type="thing.unheard")
    assert not Event.objects.exists()


@pytest.mark.parametrize("data", [{"x": object()}, {"x": "\ud800"}, {"x": 2**70}])
def test_data_that_is_not_json_stores_nothing_and_leaves_the_transaction_usable(data):
    EndpointFactory.create()
    with transaction.atomic():
        with pytest.raises(TypeError):
            publish(profile="plain", owner="alice", event_type="thing.made", data=data)
        publish_event()
    assert (Event.objects.count(), Delivery.objects.count()) == (1, 1)
