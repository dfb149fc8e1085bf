"""What owners ask of their deliveries over HTTP, in both products."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from tests.products.test_owner_api import ask, failed, refused
from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from webhooks_core import endpoints, profiles
from webhooks_core.models import Delivery, Endpoint, EndpointChange
from webhooks_core.owners import replay_jobs, replays
from webhooks_core.owners.changes import ENGINE
from webhooks_core.times import iso

pytestmark = pytest.mark.django_db(transaction=True)


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
        ("event_type=%00", "an event type must not hold NUL."),
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
