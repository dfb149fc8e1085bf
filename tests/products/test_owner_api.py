"""What owners ask of their webhooks over HTTP, in both products."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.documented import assert_documented
from tests.products.product import GATEWAY, RECORDING, Caller
from webhooks_core import endpoints, profiles
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners import changes, replay_jobs
from webhooks_core.times import iso

pytestmark = pytest.mark.django_db(transaction=True)


def ask(caller: Caller, method: str, address: str, body: Any = None) -> Any:
    """Call an address; return its body, which is as the document says."""
    response = caller.call(method, address, body)
    assert response.status_code in {200, 202}, response.content
    path = caller.product.path + address
    kind = response["Content-Type"]
    assert_documented(method, path, response.status_code, kind, response.content)
    return response.json()


def refused(caller: Caller, method: str, address: str, status: int, body=None) -> str:
    response = caller.call(method, address, body)
    path = caller.product.path + address
    kind = response["Content-Type"]
    assert_documented(method, path, response.status_code, kind, response.content)
    return caller.product.error(response, status)


def failed(caller: Caller, count: int = 1, **fields: Any) -> str:
    """Create a subscription with failed deliveries; return its id."""
    created = caller.new_id(**fields)
    for number in range(count):
        caller.publish(n=number)
    Delivery.objects.update(attempts=1, last_error="HTTP 500")
    Delivery.objects.pending().fail(error="HTTP 500")
    return created


# ── Replays ─────────────────────────────────────────────────────────────────────────


def test_a_replay_is_counted_started_shown_and_cancelled(mine):
    created = failed(mine, 3)
    since = iso(timezone.now() - timedelta(hours=1))
    asked = {"since": since, "status": "failed"}
    counted = ask(mine, "POST", f"/{created}/replay", asked | {"dry_run": True})
    assert counted == {
        "total": 3,
        "by_type": {mine.product.event_type: 3},
        "by_error": {"HTTP 500": 3},
    }
    job = ask(mine, "POST", f"/{created}/replay", asked)
    assert (job["status"], job["total"], job["sent"]) == ("running", 3, 0)
    assert (job["since"], job["selection"], job["rate_per_s"]) == (since, "failed", 50)
    assert "running" in refused(mine, "POST", f"/{created}/replay", 409, asked)
    assert replay_jobs.continue_running() == 3
    shown = ask(mine, "GET", f"/{created}/replays/{job['id']}")
    assert (shown["sent"], shown["finished_at"]) == (3, None)
    ended = ask(mine, "POST", f"/{created}/replays/{job['id']}/cancel")
    assert ended["status"] == "cancelled"
    assert ended["eta"] is None
    refused(mine, "POST", f"/{created}/replays/{job['id']}/cancel", 409)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "since is required"),
        ({"since": "2026-11-21T03:20:00Z"}, "status is required"),
        ({"since": 1, "status": "failed"}, "since must be a string"),
        ({"since": "2026-11-21T03:20:00Z", "status": "all"}, "status is one of"),
        ({"since": "8000-11-21T03:20:00Z", "status": "failed"}, "since must be before"),
        (
            {"since": "2026-11-21T03:20:00Z", "status": "failed", "dry_run": 1},
            "dry_run must be",
        ),
        (
            {
                "since": "2026-11-21T03:20:00Z",
                "status": "failed",
                "event_types": ["nothing"],
            },
            "unknown event type nothing",
        ),
    ],
)
def test_a_replay_that_is_not_described_well_is_refused(mine, body, words):
    created = failed(mine)
    assert words in refused(mine, "POST", f"/{created}/replay", 400, body)
    assert Delivery.objects.count() == 1


# ── Settings, state, changes, reasons ───────────────────────────────────────────────


def test_headers_are_set_and_shown_without_their_values(product, mine):
    created = mine.new_id()
    address = f"/{created}/settings"
    assert ask(mine, "GET", address) == {
        "custom_headers": {},
        "standard_headers": False,
    }
    changed = ask(
        mine,
        "PATCH",
        address,
        {"custom_headers": {"X-Key": "hidden"}, "standard_headers": True},
    )
    assert changed == {"custom_headers": {"X-Key": "•" * 8}, "standard_headers": True}
    assert ask(mine, "GET", address) == changed
    for body, words in (
        ({}, "is required"),
        ({"custom_headers": {"Host": "x"}}, "Host cannot be set"),
        ({"custom_headers": {"X-Key": 1}}, "object of strings"),
        ({"custom_headers": None}, "object of strings"),
        ({"standard_headers": "yes"}, "standard_headers must be"),
        ({"custom_headers": {"X-Key": "•" * 8}}, "plain text"),
        ({"custom_headers": {}, "standard_headers": None}, "standard_headers"),
    ):
        assert words in refused(mine, "PATCH", address, 400, body), body
    assert ask(mine, "GET", address) == changed


def test_a_rotation_returns_the_secret_once_and_overlaps_where_it_can(product, mine):
    created = mine.new_id()
    address = f"/{created}/secret/rotate"
    rotated = ask(mine, "POST", address, {})
    target = mine.endpoints.get()
    secrets = target.secrets(now=timezone.now())
    assert secrets[0] == rotated["secret"]
    if product is GATEWAY:
        assert (len(secrets), bool(rotated["old_secret_ends_at"])) == (2, True)
        at_once = ask(mine, "POST", address, {"overlap_s": 0})
        assert target.secrets(now=timezone.now()) == [at_once["secret"]]
    else:
        assert (len(secrets), rotated["old_secret_ends_at"]) == (1, None)
        assert "one signature" in refused(mine, "POST", address, 400, {"overlap_s": 1})
    for value in (-1, 604_801, "60", 1.5, True, None, 10**15):
        assert "overlap_s must be" in refused(
            mine, "POST", address, 400, {"overlap_s": value}
        )
    mine.endpoints.update(static_key="x")
    refused(mine, "POST", address, 409, {})


def test_the_state_is_told_in_words_with_quota_and_retention(product, mine):
    created = failed(mine)
    state = ask(mine, "GET", f"/{created}/state")
    assert (state["state"], state["quota"]) == ("healthy", product.quota)
    assert state["retention_days"] == 30
    assert state["sentence"] == "Nothing was sent yet. 0 wait."


def test_changes_say_who_and_come_in_pages(product, mine):
    created = mine.new_id()
    for number in range(3):
        endpoints.pause(mine.endpoints.get(), by=changes.operator(f"op {number}"))
        endpoints.resume(mine.endpoints.get(), by=changes.operator(f"op {number}"))
    first = ask(mine, "GET", f"/{created}/changes?page_size=5")
    assert [item["action"] for item in first["items"]][:2] == ["resumed", "paused"]
    assert {item["actor"] for item in first["items"]} == {""}  # operators' names
    rest = ask(mine, "GET", f"/{created}/changes?cursor={first['next_cursor']}")
    assert [item["action"] for item in rest["items"]] == ["paused", "created"]
    assert rest["items"][-1]["actor_kind"] == "owner"
    assert rest["items"][-1]["actor"]
    refused(mine, "GET", f"/{created}/changes?cursor=x", 400)


def test_why_an_event_did_not_arrive(mine):
    created = mine.new_id()
    event = mine.publish()
    reason = ask(mine, "GET", f"/{created}/why?event_id={event.public_id}")
    assert (reason["answer"], reason["position"]) == ("waiting", 0)
    assert reason["event_type"] == event.type
    unknown = ask(mine, "GET", f"/{created}/why?event_id=x%00")
    assert (unknown["answer"], unknown["delivery_id"]) == ("unknown", None)
    assert "event_id" in refused(mine, "GET", f"/{created}/why", 400)


@pytest.mark.parametrize(
    "tail", ["state", "changes", "settings", "why?event_id=x", "deliveries/x"]
)
def test_an_unknown_parameter_of_a_new_address_is_refused(mine, tail):
    created = failed(mine)
    [record] = mine.get(f"/{created}/deliveries?unknown=x")
    tail = tail.replace("deliveries/x", f"deliveries/{record['id']}")
    sign = "&" if "?" in tail else "?"
    message = refused(mine, "GET", f"/{created}/{tail}{sign}limit=5", 400)
    assert message == "limit is not a parameter of this address."


# ── Events ──────────────────────────────────────────────────────────────────────────


def events_of(caller: Caller, tail: str) -> Any:
    """Call an address of events, which recording has beside its subscriptions."""
    root = "/v1/webhook-events"
    addresses = {"events": root, "types": f"{root}/types"}
    if caller.product is GATEWAY:
        root = f"{GATEWAY.path}/"
        addresses = {"events": f"{root}events", "types": f"{root}event-types"}
    name, _, query = tail.partition("?")
    path = addresses[name]
    relative = path.removeprefix(caller.product.path)
    if caller.product is RECORDING:
        response = caller.api.send("GET", f"{path.removeprefix('/v1/')}?{query}")
    else:
        response = caller.call("GET", f"{relative}?{query}")
    kind = response["Content-Type"]
    assert_documented("GET", path, response.status_code, kind, response.content)
    return response


def test_event_types_have_schema_and_sample(product, mine):
    items = events_of(mine, "types").json()["items"]
    known = profiles.get(product.name).event_types
    assert [item["name"] for item in items] == list(known)
    assert all(item["sample"] and item["description"] for item in items)
    product.error(events_of(mine, "types?x=1"), 400)


def test_stored_events_tell_what_became_of_each(product, mine, theirs):
    theirs.new_id()
    theirs.publish()
    created = mine.new_id()
    delivered = mine.publish(n=1)
    Delivery.objects.filter(event=delivered).update(
        status=1, delivered_at=timezone.now(), next_attempt_at=None
    )
    mine.endpoints.update(status=Endpoint.Status.DISABLED)
    skipped = mine.publish(n=2)
    first, second = events_of(mine, "events").json()["items"]
    assert (first["id"], second["id"]) == (skipped.public_id, delivered.public_id)
    [fate] = first["endpoints"]
    assert fate == {"endpoint_id": created, "outcome": "skipped", "delivery_id": ""}
    [fate] = second["endpoints"]
    assert (fate["outcome"], bool(fate["delivery_id"])) == ("delivered", True)
    page = events_of(mine, "events?page_size=1").json()
    rest = events_of(mine, f"events?cursor={page['next_cursor']}").json()
    assert [item["id"] for item in rest["items"]] == [delivered.public_id]
    assert events_of(mine, "events?event_type=x").json()["items"] == []
    for query in ("x=1", "cursor=x", "since=x", "page_size=0", "event_type=%00"):
        product.error(events_of(mine, f"events?{query}"), 400)


# ── Costs and limits ────────────────────────────────────────────────────────────────


def test_each_address_costs_the_same_queries_however_much_there_is(mine):
    created = failed(mine, 2)
    [record, _] = mine.get(f"/{created}/deliveries")
    addresses = (
        f"/{created}/deliveries?status=failed_undelivered&page_size=100",
        f"/{created}/deliveries/{record['id']}",
        f"/{created}/state",
        f"/{created}/changes",
        f"/{created}/why?event_id={record['event_id']}",
    )

    def queries() -> list[int]:
        counts = []
        for address in addresses:
            with CaptureQueriesContext(connection) as captured:
                ask(mine, "GET", address)
            counts.append(len(captured))
        return counts

    few = queries()
    for number in range(20):
        mine.publish(n=number)
    Delivery.objects.pending().fail(error="HTTP 500")
    assert queries() == few


@pytest.mark.usefixtures("no_counts")
@pytest.mark.parametrize(
    ("scope", "tail"),
    [("resend", "deliveries/{}/resend"), ("replay", "replay")],
)
def test_resends_and_replays_have_a_rate_of_their_own(
    product, mine, settings, scope, tail
):
    created = failed(mine)
    [record] = mine.get(f"/{created}/deliveries")
    rates = dict.fromkeys(getattr(settings, product.setting), "")
    setattr(settings, product.setting, rates | {scope: "1/hour"})
    since = iso(timezone.now() - timedelta(hours=1))
    body = {"since": since, "status": "failed", "dry_run": True}
    address = f"/{created}/{tail.format(record['id'])}"
    assert mine.call("POST", address, body).status_code < 300
    message = refused(mine, "POST", address, 429, body)
    assert message.startswith("Too many ")
