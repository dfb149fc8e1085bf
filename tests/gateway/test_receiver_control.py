"""The receiver's word, with a real receiver: what `webhooks.receiver_control` obeys, and what not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import orjson
import pytest
import time_machine
from django.utils import timezone

from gateway import alerts
from tests.gateway.client import Api
from tests.receiver import Receiver, receiver
from tests.webhooks_core.engine import dispatch
from webhooks_core import endpoints, profiles
from webhooks_core.models import Attempt, Delivery, Endpoint, EndpointChange, Event
from webhooks_core.owners import alerts as notices
from webhooks_core.owners import endpoint_state
from webhooks_core.pages import history, wording

pytestmark = pytest.mark.django_db(transaction=True)

OFF = "which switches the endpoint off"
ONCE = "which forbids a repetition"


@pytest.fixture
def obeying(monkeypatch) -> None:
    changed = replace(profiles.get("gateway"), receiver_control=True)
    monkeypatch.setitem(profiles.PROFILES, "gateway", changed)


@pytest.fixture
def told(monkeypatch) -> list[tuple[object, ...]]:
    """The tasks that tell the tenant."""
    queued: list[tuple[object, ...]] = []
    monkeypatch.setattr(alerts, "async_task", lambda *task: queued.append(task))
    return queued


def send_later() -> int:
    with time_machine.travel(timezone.now() + timedelta(minutes=1)):
        return dispatch()


def answering(status: int, header: str) -> Receiver:
    server = Receiver(status)
    server.headers = {"Webhook-Delivery": header} if header else {}
    return server


@pytest.mark.parametrize(
    ("status", "header"), [(410, ""), (413, ""), (500, "disable"), (204, "disable")]
)
def test_without_the_option_nothing_is_obeyed(acme, told, status, header):
    with answering(status, header).running() as subscriber:
        subscription = acme.create(subscriber.url)
        acme.ingest()
        assert dispatch() + send_later() == (1 if status == 204 else 2)
    assert acme.get(f"/{subscription['id']}")["active"]
    assert told == []
    [change] = EndpointChange.objects.all()
    assert change.action == EndpointChange.Action.CREATED


@pytest.mark.usefixtures("obeying")
@pytest.mark.parametrize(
    ("status", "header", "answer"),
    [
        (410, "", "HTTP 410"),
        (500, " DISABLE ", "HTTP 500 with webhook-delivery: disable"),
        (413, "disable", "HTTP 413 with webhook-delivery: disable"),
        (410, "abort-message", "HTTP 410 with webhook-delivery: abort-message"),
    ],
)
def test_the_receiver_switches_its_subscription_off(
    admin_client, acme: Api, told, status, header, answer
):
    with answering(status, header).running() as subscriber:
        subscription = acme.create(subscriber.url)
        endpoint = Endpoint.objects.get()
        endpoints.update(endpoint, max_in_flight=1)
        acme.ingest("one")
        acme.ingest("two")
        acme.ingest("three")
        dispatch()
        assert send_later() == 0
    assert 1 <= len(subscriber.requests) <= 2  # one may be claimed already
    assert not acme.get(f"/{subscription['id']}")["active"]
    assert set(Delivery.objects.values_list("status", flat=True)) == {
        Delivery.Status.FAILED
    }
    attempt = Attempt.objects.order_by("pk")[0]
    assert attempt.error == f"{answer}, {OFF}"
    assert attempt.delivery.last_error == attempt.error
    assert "endpoint inactive" in Delivery.objects.values_list("last_error", flat=True)
    endpoint.refresh_from_db()
    state = endpoint_state.describe(endpoint)
    assert state.sentence.startswith("Switched off by its receiver since ")
    assert "HTTP" in state.error
    assert "webhook-delivery: disable" in state.remedy
    change = EndpointChange.objects.get(action=EndpointChange.Action.DISABLED)
    [line] = history.lines([change])
    assert (line.actor, line.words) == ("The receiver", "switched it off")
    assert line.details == [("answer", attempt.error)]
    assert told == [("gateway.alerts.tell", "disabled", endpoint.public_id)]
    page = admin_client.get(f"/admin/webhooks_core/endpoint/{endpoint.pk}/change/")
    text = page.content.decode()
    assert "Switched off by its receiver since " in text
    assert "Its owner has switched it off" not in text
    assert f"{answer}, {OFF}" in text


@pytest.mark.usefixtures("obeying", "told")
def test_the_word_counts_behind_many_other_headers(acme):
    server = Receiver(500)
    others = {f"X-Other-{number}": 1000 * "x" for number in range(8)}
    server.headers = others | {"Webhook-Delivery": "disable"}
    with server.running() as subscriber:
        subscription = acme.create(subscriber.url)
        acme.ingest()
        dispatch()
    assert not acme.get(f"/{subscription['id']}")["active"]


@pytest.mark.usefixtures("obeying")
def test_a_delivered_event_may_be_the_last_one(acme, told):
    with answering(200, "disable").running() as subscriber:
        subscription = acme.create(subscriber.url)
        acme.create(subscriber.url + "/alerts", event_types=["endpoint.disabled"])
        acme.ingest()
        assert dispatch() == 1
        acme.ingest("more")
        assert dispatch() == 0
    delivery = Delivery.objects.select_related("endpoint").get()
    assert delivery.status == Delivery.Status.DELIVERED
    [attempt] = delivery.attempt_set.all()
    verdict = wording.verdict(
        delivery, [attempt], later=[], timeout_s=10, waiting=""
    ).headline
    assert f"answered 200 with webhook-delivery: disable ({OFF})" in verdict
    assert not acme.get(f"/{subscription['id']}")["active"]
    alerts.tell("disabled", subscription["id"])
    event = Event.objects.get(type="endpoint.disabled")
    assert orjson.loads(bytes(event.body))["data"]["message"].startswith(
        "Switched off by its receiver since "
    )
    # It has not failed, so nothing recovers.
    assert notices.send_due(timezone.now()) == 0
    assert len(told) == 1


@pytest.mark.usefixtures("obeying")
def test_a_subscription_that_its_receiver_switched_off_is_enabled_again(acme, told):
    with receiver(410, 204) as subscriber:
        subscription = acme.create(subscriber.url)
        acme.ingest("one")
        dispatch()
        enabled = acme.patch(subscription, active=True)
        assert enabled["active"]
        acme.ingest("two")
        assert dispatch() == 1
        assert notices.send_due(timezone.now()) == 1
    endpoint = Endpoint.objects.get()
    assert (endpoint.refused_at, endpoint.disabled_at) == (None, None)
    assert endpoint_state.describe(endpoint).sentence.startswith("Delivers.")
    assert [kinds for _, kinds, _ in told] == ["disabled", "recovered"]
    Endpoint.objects.update(active=False, refused_at=timezone.now())
    endpoint.refresh_from_db()
    assert endpoint.may_be_enabled
    assert endpoints.enable(endpoint).is_receiving


@pytest.mark.usefixtures("obeying")
@pytest.mark.parametrize(
    ("status", "header", "text"),
    [
        (413, "", f"HTTP 413, {ONCE}"),
        (
            503,
            "abort-message",
            f"HTTP 503 with webhook-delivery: abort-message, {ONCE}",
        ),
    ],
)
def test_one_delivery_ends_without_further_retries(acme, told, status, header, text):
    with answering(status, header).running() as subscriber:
        subscription = acme.create(subscriber.url)
        acme.ingest()
        assert dispatch() == 1
        assert send_later() == 0
        subscriber.statuses, subscriber.headers = [204], {}
        acme.ingest("the next one")
        assert dispatch() == 1
    assert acme.get(f"/{subscription['id']}")["active"]
    newest, oldest = acme.deliveries(subscription)
    assert (newest["status"], oldest["status"]) == ("delivered", "failed")
    assert oldest["attempts"] == 1
    assert oldest["last_error"] == Attempt.objects.order_by("pk")[0].error == text
    assert told == []


@pytest.mark.usefixtures("obeying")
@pytest.mark.parametrize(
    ("status", "header"), [(204, "abort-message"), (500, "stop"), (503, "")]
)
def test_other_answers_mean_what_they_always_mean(acme, told, status, header):
    with answering(status, header).running() as subscriber:
        subscription = acme.create(subscriber.url)
        acme.ingest()
        dispatch()
    [delivery] = acme.deliveries(subscription)
    is_delivered = status == 204
    assert delivery["status"] == ("delivered" if is_delivered else "attempting")
    assert Attempt.objects.get().error == ("" if is_delivered else f"HTTP {status}")
    assert told == []


def test_the_option_is_off_unless_the_file_says_so(load):
    assert not load("webhooks: {}").webhooks.receiver_control
    assert load("webhooks: {receiver_control: true}").webhooks.receiver_control
