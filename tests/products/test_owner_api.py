"""What owners ask of their webhooks over HTTP, in both products."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.documented import assert_documented
from tests.products.product import GATEWAY, RECORDING, Caller
from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from webhooks_core import endpoints, profiles, replays
from webhooks_core.models import Delivery, Endpoint, EndpointChange
from webhooks_core.owners import changes, replay_jobs
from webhooks_core.owners.changes import ENGINE
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


# ── Deliveries ──────────────────────────────────────────────────────────────────────


def test_the_list_takes_filters_and_a_cursor_beside_the_contract_s_pages(product, mine):
    created = failed(mine, 3)
    event = mine.publish(n=4)
    pending, _, is_failed = product.statuses
    base = f"/{created}/deliveries"
    found = ask(mine, "GET", f"{base}?status={is_failed}&page_size=2")
    assert [len(found["items"]), list(found)] == [2, ["items", "next_cursor"]]
    rest = ask(mine, "GET", f"{base}?status={is_failed}&cursor={found['next_cursor']}")
    assert (len(rest["items"]), rest["next_cursor"]) == (1, "")
    assert list(found["items"][0]) == list(mine.get(base)[0])
    for query, expected in (
        ("cursor=", 4),
        (f"status={pending}", 1),
        ("status=failed_undelivered", 3),
        (f"event_id={event.public_id}", 1),
        (f"event_type={product.event_type}&event_type=nothing", 4),
        ("event_type=nothing", 0),
        ("status_class=5xx", 3),
        ("status_class=none", 1),
        (f"since={iso(timezone.now() - timedelta(hours=1))}", 4),
        (f"until={iso(timezone.now() - timedelta(hours=1))}", 0),
    ):
        assert len(ask(mine, "GET", f"{base}?{query}")["items"]) == expected, query


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("status=", "status is one of"),
        ("status=9", "status is one of"),
        ("status_class=6xx", "status_class is one of"),
        ("since=yesterday", "since must be a time"),
        ("since=2026-11-21T03:20:00", "since must be a time"),
        ("since=2026-13-45T00:00:00Z", "since must be a time"),
        ("since=0001-01-01T00:00:00%2B14:00", "since must be a time"),
        ("until=9999-12-31T23:59:59Z", "until must be a time"),
        (
            "since=2026-11-21T03:20:00Z&until=2026-11-21T03:20:00Z",
            "since must be before until.",
        ),
        ("cursor=x", "cursor"),
        ("cursor=&page=2", "page and filters exclude each other"),
        ("cursor=&page_size=0", "page_size"),
        ("event_id=%00" + "x" * 64, "event_id"),
        ("&".join(f"event_type={n}" for n in range(51)), "event_type"),
    ],
)
def test_filters_that_are_wrong_are_refused(mine, query, words):
    created = mine.new_id()
    message = refused(mine, "GET", f"/{created}/deliveries?{query}", 400)
    assert words in message or words.partition(" ")[0] in message


def test_a_delivery_shows_what_was_sent_and_answered_but_no_secret(product, mine):
    with receiver(500, 204) as server:
        server.answer = b'{"error": "no\x00 disk"}'
        server.headers = {"X-Reason": "disk"}
        created = mine.new_id(url=server.url)
        target = mine.endpoints.get()
        endpoints.set_custom_headers(target, {"X-Key": "hidden"})
        event = mine.publish()
        assert dispatch() == 1
        delivery = Delivery.objects.select_related("endpoint").get()
        assert replays.retry_now(delivery, by=ENGINE)
        assert dispatch() == 1
    base = f"/{created}/deliveries/{delivery.public_id}"
    body = ask(mine, "GET", base)
    assert body["delivery"] == mine.get(f"/{created}/deliveries")[0]
    assert body["event"]["id"] == event.public_id
    assert body["event"]["payload"].encode() == bytes(event.body)
    assert body["sensitive"] == ["X-Key"]
    first, second = body["attempts"]
    assert (first["trigger"], second["trigger"]) == ("scheduled", "manual")
    assert (first["number"], first["url"]) == (1, server.url)
    assert (first["response_status"], first["error_class"]) == (500, "http")
    assert first["response_text"] == '{"error": "no� disk"}'
    assert first["response_headers"]["X-Reason"] == "disk"
    assert (second["response_status"], second["error_class"]) == (204, "")
    header = profiles.get(product.name).signature_header
    sent = server.requests[0].headers
    assert first["request_headers"][header] == sent[header]
    assert "hidden" not in str(body)
    assert "127.0.0.1" not in str(body).replace(server.url, "").replace(
        f"127.0.0.1:{server.port}", ""
    )


def test_what_an_internal_receiver_answers_stays_with_operators(mine, settings):
    settings.WEBHOOK_ALLOWED_TARGETS = ["10.0.0.0/8"]
    with receiver(500) as server:
        server.answer = b"inside"
        created = mine.new_id(url=server.url)
        mine.endpoints.update(trusted=True)
        mine.publish()
        assert dispatch() == 1
    [record] = mine.get(f"/{created}/deliveries")
    body = ask(mine, "GET", f"/{created}/deliveries/{record['id']}")
    [attempt] = body["attempts"]
    assert (attempt["response_headers"], attempt["response_text"]) == (None, None)
    assert attempt["response_status"] == 500
    state = ask(mine, "GET", f"/{created}/state")
    assert state["error"] == "HTTP 500"
    assert "inside" not in str((body, state))


def test_resend_retry_now_and_cancel(product, mine):
    created = failed(mine)
    base = f"/{created}/deliveries"
    [record] = mine.get(base)
    sent = ask(mine, "POST", f"{base}/{record['id']}/resend")
    assert sent["event_id"] == record["event_id"]
    assert sent["id"] != record["id"]
    again = ask(mine, "POST", f"{base}/{record['id']}/resend")
    assert again == sent  # one is pending
    assert ask(mine, "POST", f"{base}/{sent['id']}/retry-now")["id"] == sent["id"]
    ask(mine, "POST", f"{base}/{sent['id']}/cancel")
    [cancelled, _] = mine.get(base)
    assert cancelled["last_error"] == "cancelled by the owner"
    assert cancelled["status"] == product.statuses[2]
    details = ask(mine, "GET", f"{base}/{record['id']}")
    assert (details["resent"], details["trigger"]) == ("failed", "event")
    for verb in ("retry-now", "cancel"):
        assert "nothing was changed" in refused(
            mine, "POST", f"{base}/{sent['id']}/{verb}", 409
        )
    mine.endpoints.update(status=Endpoint.Status.DISABLED)
    message = refused(mine, "POST", f"{base}/{record['id']}/resend", 409)
    assert message == "The subscription is disabled: nothing would be sent."
    actions = EndpointChange.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["created", "resent", "retried", "retried", "cancelled"]


def test_a_delivery_of_before_retention_is_gone(mine):
    created = failed(mine)
    base = f"/{created}/deliveries"
    [record] = mine.get(base)
    Delivery.objects.all().delete()
    refused(mine, "GET", f"{base}/{record['id']}", 404)
    with time_machine.travel(timezone.now() + timedelta(days=31)):
        for method, tail in (("GET", ""), ("POST", "/resend"), ("POST", "/cancel")):
            response = mine.call(method, f"{base}/{record['id']}{tail}")
            if response.status_code != 401:  # recording's token has expired
                mine.product.error(response, 410)


def test_deliveries_and_replays_of_others_are_not_there(product, mine, theirs):
    created, other = failed(mine), failed(theirs)
    [record] = theirs.get(f"/{other}/deliveries")
    job = replay_jobs.start(
        theirs.endpoints.get(),
        replay_jobs.Selection(
            kind=replay_jobs.Kind.FAILED,
            since=timezone.now() - timedelta(hours=1),
            until=timezone.now(),
        ),
        by=ENGINE,
    )
    before = Delivery.objects.count()
    for method, tail in (
        ("GET", f"deliveries/{record['id']}"),
        ("POST", f"deliveries/{record['id']}/resend"),
        ("POST", f"deliveries/{record['id']}/retry-now"),
        ("POST", f"deliveries/{record['id']}/cancel"),
        ("GET", f"replays/{job.public_id}"),
        ("POST", f"replays/{job.public_id}/cancel"),
        ("GET", "deliveries/%00"),
        ("GET", f"deliveries/{product.absent}"),
    ):
        refused(mine, method, f"/{created}/{tail}", 404)
        refused(mine, method, f"/{other}/{tail}", 404)
    assert Delivery.objects.count() == before
    reason = ask(mine, "GET", f"/{created}/why?event_id={record['event_id']}")
    assert reason["answer"] == "unknown"
    found = ask(mine, "GET", f"/{created}/deliveries?event_id={record['event_id']}")
    assert found["items"] == []


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
    for query in ("x=1", "cursor=x", "since=x", "page_size=0"):
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
    counts = []
    for _ in range(2):
        queries = []
        for address in addresses:
            with CaptureQueriesContext(connection) as captured:
                ask(mine, "GET", address)
            queries.append(len(captured))
        counts.append(queries)
        for number in range(40):
            mine.publish(n=number)
        Delivery.objects.pending().fail(error="HTTP 500")
    assert counts[0] == counts[1]


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
