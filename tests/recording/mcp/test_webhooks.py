"""The tools for webhooks follow the rules of the API."""

from __future__ import annotations

import pytest
from django.core.cache import cache

from recording.subscriptions import Subscriptions
from tests.recording.conftest import OTHER_URL, URL
from tests.recording.mcp.conftest import Client
from webhooks_core import endpoints
from webhooks_core.models import Delivery, Endpoint

NONE = "ep_" + "0" * 26


@pytest.fixture
def theirs(stranger) -> str:
    return str(stranger.create()["endpoint_id"])


def test_a_webhook_lives_as_through_the_api(mcp):
    created = mcp.call("create_webhook", url=URL, events=["summary.completed"])
    assert created["secret"].startswith("whsec_")
    [item] = mcp.call("list_webhooks")["webhooks"]
    assert [item] == mcp.api.get("webhooks").json()["items"]
    assert item["id"] == created["endpoint_id"]
    changed = mcp.call("update_webhook", endpoint_id=item["id"], url=OTHER_URL)
    assert (changed["url"], changed["events"]) == (OTHER_URL, ["summary.completed"])
    changed = mcp.call("update_webhook", endpoint_id=item["id"], events=[])
    assert (changed["url"], changed["events"]) == (OTHER_URL, [])
    assert mcp.call("delete_webhook", endpoint_id=item["id"]) == {"ok": True}
    assert mcp.call("list_webhooks")["webhooks"] == []


def test_omitted_events_stay_as_another_call_has_left_them(mcp, monkeypatch):
    endpoint_id = mcp.api.create()["endpoint_id"]

    def change_events(*_: object, **__: object):
        assert mcp.api.patch(f"webhooks/{endpoint_id}", {"events": ["webhook.ping"]})

    monkeypatch.setattr(endpoints, "check_url", change_events)
    changed = mcp.call("update_webhook", endpoint_id=endpoint_id, url=OTHER_URL)
    assert (changed["url"], changed["events"]) == (OTHER_URL, ["webhook.ping"])


def test_a_test_event_is_queued_listed_and_sent_again(mcp):
    endpoint_id = mcp.api.create()["endpoint_id"]
    event_id = mcp.call("send_test_event", endpoint_id=endpoint_id)["event_id"]
    [delivery] = mcp.call("list_deliveries", endpoint_id=endpoint_id)["deliveries"]
    assert delivery["event_id"] == event_id
    mine = {"endpoint_id": endpoint_id, "delivery_id": delivery["id"]}
    assert mcp.call("resend_delivery", **mine)["id"] == delivery["id"]  # it is pending
    Delivery.objects.update(
        status=Delivery.Status.FAILED, next_attempt_at=None, last_error="status 500"
    )
    resent = mcp.call("resend_delivery", **mine)["id"]
    assert resent != delivery["id"]
    assert Delivery.objects.get(public_id=resent).event.public_id == event_id
    page = mcp.call("list_deliveries", endpoint_id=endpoint_id, page=2)
    assert page["deliveries"] == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"url": "http://example.com/", "events": []}, "https"),
        ({"url": "https://10.0.0.1/", "events": []}, "url"),
        ({"url": "", "events": []}, "url is required."),
        ({"url": "https://93.184.216.34/\0", "events": []}, "url"),
        ({"url": URL, "events": ["no.such"]}, "unknown event type"),
        ({"url": URL, "events": [5]}, "events.0: "),
        ({"url": URL, "events": ["x"] * 21}, "events: "),
        ({"url": URL}, "events: Field required"),
        ({"url": None, "events": []}, "url: "),
        ({"url": "x" * 2049, "events": []}, "url: "),
    ],
)
def test_what_the_api_refuses_changes_nothing(mcp, arguments, text):
    assert text in mcp.refusal("create_webhook", **arguments)
    assert not Endpoint.objects.exists()


def test_the_quota_is_the_accounts(mcp):
    for _ in range(5):
        mcp.call("create_webhook", url=URL, events=[])
    refusal = mcp.refusal("create_webhook", url=URL, events=[])
    assert "at most 5 subscriptions" in refusal
    assert Endpoint.objects.count() == 5


def test_the_limits_of_the_api_count_these_calls_too(mcp, settings):
    cache.clear()
    settings.RECORDING_RATES = settings.RECORDING_RATES | {"create": "1/hour"}
    mcp.call("create_webhook", url=URL, events=[])
    assert "1 per hour" in mcp.refusal("create_webhook", url=URL, events=[])
    assert mcp.api.post("webhooks", {"url": URL}).status_code == 429


@pytest.mark.parametrize(
    ("tool", "more"),
    [
        ("update_webhook", {"url": OTHER_URL}),
        ("delete_webhook", {}),
        ("send_test_event", {}),
        ("list_deliveries", {}),
        ("resend_delivery", {"delivery_id": "dlv_" + "0" * 26}),
    ],
)
def test_another_accounts_webhook_is_not_found(mcp, stranger, theirs, tool, more):
    for endpoint_id in (theirs, NONE, "ep_\0", "x"):
        refusal = mcp.refusal(tool, endpoint_id=endpoint_id, **more)
        assert "There is no such subscription." in refusal
    row = Endpoint.objects.get()
    assert (row.url, row.deleted_at) == (URL, None)
    assert not Delivery.objects.exists()


def test_another_accounts_delivery_is_not_found(mcp, stranger, theirs):
    Subscriptions(stranger.user).send_test(theirs)
    delivery_id = Delivery.objects.get().public_id
    mine = {"endpoint_id": mcp.api.create()["endpoint_id"]}
    refusal = mcp.refusal("resend_delivery", **mine, delivery_id=delivery_id)
    assert "There is no such delivery." in refusal
    assert Client(stranger).call(
        "resend_delivery", endpoint_id=theirs, delivery_id=delivery_id
    )


def test_nothing_is_sent_again_to_a_disabled_webhook(mcp):
    endpoint_id = mcp.api.create()["endpoint_id"]
    mcp.call("send_test_event", endpoint_id=endpoint_id)
    Endpoint.objects.update(status=Endpoint.Status.DISABLED)
    refusal = mcp.refusal(
        "resend_delivery",
        endpoint_id=endpoint_id,
        delivery_id=Delivery.objects.get().public_id,
    )
    assert "disabled" in refusal
