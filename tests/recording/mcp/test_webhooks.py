"""The tools for webhooks follow the rules of the API."""

import pytest
from django.core.cache import cache

from tests.recording.conftest import URL
from webhooks_core.models import Delivery, Endpoint

NONE = "ep_" + "0" * 26


def test_a_webhook_lives_as_through_the_api(mcp):
    created = mcp.call("create_webhook", url=URL, events=["summary.completed"])
    assert created["secret"].startswith("whsec_")
    [item] = mcp.call("list_webhooks")["webhooks"]
    assert [item] == mcp.api.get("webhooks").json()["items"]
    assert item["id"] == created["endpoint_id"]
    assert mcp.call("delete_webhook", endpoint_id=item["id"]) == {"ok": True}
    assert mcp.call("list_webhooks")["webhooks"] == []


def test_a_test_event_is_queued_and_listed(mcp):
    endpoint_id = mcp.api.create()["endpoint_id"]
    event_id = mcp.call("send_test_event", endpoint_id=endpoint_id)["event_id"]
    [delivery] = mcp.call("list_deliveries", endpoint_id=endpoint_id)["deliveries"]
    assert delivery["event_id"] == event_id
    [listed] = mcp.api.get(f"webhooks/{endpoint_id}/deliveries").json()["items"]
    assert delivery == listed
    page = mcp.call("list_deliveries", endpoint_id=endpoint_id, page=2)
    assert page["deliveries"] == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"url": "http://example.com/", "events": []}, "https"),
        ({"url": "", "events": []}, "url is required."),
        ({"url": URL, "events": ["no.such"]}, "unknown event type"),
        ({"url": URL, "events": [5]}, "events.0: "),
        ({"url": URL, "events": ["x"] * 21}, "events: "),
        ({"url": URL}, "events: Field required"),
        ({"url": "x" * 2049, "events": []}, "url: "),
    ],
)
def test_what_the_api_refuses_changes_nothing(mcp, arguments, text):
    assert text in mcp.refusal("create_webhook", **arguments)
    assert not Endpoint.objects.exists()


def test_the_limits_of_the_api_count_these_calls_too(mcp, settings):
    cache.clear()
    settings.RECORDING_RATES = settings.RECORDING_RATES | {"create": "1/hour"}
    mcp.call("create_webhook", url=URL, events=[])
    assert "1 per hour" in mcp.refusal("create_webhook", url=URL, events=[])
    assert mcp.api.post("webhooks", {"url": URL}).status_code == 429


@pytest.mark.parametrize(
    "tool", ["delete_webhook", "send_test_event", "list_deliveries"]
)
def test_another_accounts_webhook_is_not_found(mcp, stranger, tool):
    for endpoint_id in (stranger.create()["endpoint_id"], NONE, "ep_\0", "x"):
        refusal = mcp.refusal(tool, endpoint_id=endpoint_id)
        assert "There is no such subscription." in refusal
    row = Endpoint.objects.get()
    assert (row.url, row.deleted_at) == (URL, None)
    assert not Delivery.objects.exists()
