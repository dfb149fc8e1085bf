"""What owners ask of their webhooks over HTTP besides the contract, in both products.

The rules are proved at the use cases (tests/webhooks_core/owners): here is what each address answers.
"""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.clock import travel
from tests.documented import assert_documented
from tests.products.product import GATEWAY, Caller
from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from webhooks_core import endpoints, profiles
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.times import iso

pytestmark = pytest.mark.django_db(transaction=True)
NOTHING_SENT = "Nothing is sent: the endpoint is disabled, paused or deleted."


def ask(
    caller: Caller, method: str, address: str, body: Any = None, status: int = 0
) -> Any:
    """Call an address; return its body, which is as the document says."""
    response = caller.call(method, address, body)
    expected = {status} if status else {200, 202}
    assert response.status_code in expected, response.content
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


def test_the_list_takes_filters_beside_the_contract_s_pages(product, mine):
    base = f"/{failed(mine, 3)}/deliveries"
    event = mine.publish(n=4)
    pending, delivered, is_failed = product.statuses
    for query, expected in (
        ("", 4),
        (f"status={pending}", 1),
        (f"status={delivered}", 0),
        (f"status={is_failed}&page_size=2", 2),
        (f"status={is_failed}&page_size=2&page=2", 1),
        ("status=failed_undelivered", 3),
        (f"event_id={event.public_id}", 1),
        ("unknown=x", 4),  # the contract's address
    ):
        assert len(ask(mine, "GET", f"{base}?{query}")["items"]) == expected, query


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("status=", "status is one of"),
        ("event_id=%00", "event_id must not hold NUL."),
        ("event_id=" + "x" * 65, "event_id has more than 64 characters."),
    ],
)
def test_filters_that_are_wrong_are_refused(mine, query, words):
    created = mine.new_id()
    assert words in refused(mine, "GET", f"/{created}/deliveries?{query}", 400)


def test_a_delivery_shows_what_was_sent_and_answered_but_no_secret(product, mine):
    with receiver(500) as server:
        server.answer = b'{"error": "no\x00 disk"}'
        server.headers = {"X-Reason": "disk"}
        created = mine.new_id(url=server.url)
        endpoints.set_custom_headers(mine.endpoints.get(), {"X-Key": "hidden"})
        event = mine.publish()
        assert dispatch() == 1
    [record] = mine.get(f"/{created}/deliveries")
    body = ask(mine, "GET", f"/{created}/deliveries/{record['id']}")
    assert body["delivery"] == record
    assert body["event"]["payload"].encode() == bytes(event.body)
    assert body["sensitive"] == ["X-Key"]
    [attempt] = body["attempts"]
    assert attempt["number"] == 1
    assert (attempt["response_status"], attempt["error_class"]) == (500, "http")
    assert attempt["response_text"] == '{"error": "no� disk"}'
    assert attempt["response_headers"]["X-Reason"] == "disk"
    header = profiles.get(product.name).signature_header
    assert attempt["request_headers"][header] == server.requests[0].headers[header]
    assert "hidden" not in str(body)
    assert "127.0.0.1" not in str(body).replace(f"127.0.0.1:{server.port}", "")


def test_what_an_internal_receiver_answers_stays_with_operators(mine, settings):
    settings.WEBHOOK_ALLOWED_TARGETS = ["10.0.0.0/8"]
    with receiver(500) as server:
        created = mine.new_id(url=server.url)
        mine.endpoints.update(trusted=True)
        mine.publish()
        assert dispatch() == 1
    [record] = mine.get(f"/{created}/deliveries")
    body = ask(mine, "GET", f"/{created}/deliveries/{record['id']}")
    [attempt] = body["attempts"]
    assert (attempt["response_headers"], attempt["response_text"]) == (None, None)
    assert attempt["response_status"] == 500


# ── Resend ──────────────────────────────────────────────────────────────────────────


def test_a_delivery_is_resent(mine):
    base = f"/{failed(mine)}/deliveries"
    [record] = mine.get(base)
    sent = ask(mine, "POST", f"{base}/{record['id']}/resend", status=202)
    assert sent["event_id"] == record["event_id"]
    assert sent["id"] != record["id"]
    assert ask(mine, "POST", f"{base}/{record['id']}/resend") == sent  # it is pending
    details = ask(mine, "GET", f"{base}/{record['id']}")
    assert details["trigger"] == "event"
    assert ask(mine, "GET", f"{base}/{sent['id']}")["trigger"] == "manual"


def test_what_failed_and_what_was_missed_is_counted_and_resent(mine):
    created = failed(mine, 2)
    since = iso(timezone.now() - timedelta(hours=1))
    target = mine.endpoints.get()
    endpoints.update(target, status=Endpoint.Status.DISABLED)
    mine.publish(n=3)
    endpoints.update(target, status=Endpoint.Status.ACTIVE)
    for status, count in (("failed", 2), ("missed", 1)):
        body = {"since": since, "status": status}
        address = f"/{created}/resend"
        counted = ask(mine, "POST", address, body | {"dry_run": True}, status=200)
        assert counted == {"count": count}
        assert ask(mine, "POST", address, body, status=202) == {"count": count}
        assert ask(mine, "POST", address, body) == {"count": 0}
    assert Delivery.objects.pending().count() == 3


@pytest.mark.parametrize(
    "off", [{"status": 2}, {"active": False}], ids=["disabled", "inactive"]
)
def test_what_cannot_be_sent_is_409(mine, off):
    created = failed(mine)
    [record] = mine.get(f"/{created}/deliveries")
    mine.endpoints.update(**off)
    since = {"since": iso(timezone.now() - timedelta(hours=1))}
    one, many = f"/{created}/deliveries/{record['id']}/resend", f"/{created}/resend"
    assert refused(mine, "POST", one, 409) == NOTHING_SENT
    assert refused(mine, "POST", many, 409, since) == NOTHING_SENT
    assert ask(mine, "POST", many, since | {"dry_run": True}) == {"count": 1}
    assert Delivery.objects.count() == 1


# Besides the bodies in the golden file of tests/contract.
@pytest.mark.parametrize(
    "since",
    [
        "yesterday",
        "2026-13-45T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59Z",
    ],
)
def test_a_time_that_is_none_resends_nothing(mine, since):
    created = failed(mine)
    message = refused(mine, "POST", f"/{created}/resend", 400, {"since": since})
    assert "since must be a time" in message
    assert Delivery.objects.count() == 1


def test_a_delivery_of_before_retention_is_gone(mine):
    base = f"/{failed(mine)}/deliveries"
    [record] = mine.get(base)
    Delivery.objects.all().delete()
    refused(mine, "GET", f"{base}/{record['id']}", 404)
    with travel(timezone.now() + timedelta(days=31)):
        for method, tail in (("GET", ""), ("POST", "/resend")):
            response = mine.call(method, f"{base}/{record['id']}{tail}")
            if response.status_code != 401:  # recording's token has expired
                mine.product.error(response, 410)


# ── Secret and headers ──────────────────────────────────────────────────────────────


def test_headers_are_set_and_shown_without_their_values(product, mine):
    address = f"/{mine.new_id()}/settings"
    nothing = {"custom_headers": {}, "standard_headers": False}
    assert ask(mine, "GET", address) == nothing
    wanted = {"custom_headers": {"X-Key": "hidden"}, "standard_headers": True}
    changed = ask(mine, "PATCH", address, wanted)
    assert changed == {"custom_headers": {"X-Key": "•" * 8}, "standard_headers": True}
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
    address = f"/{mine.new_id()}/secret/rotate"
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


# ── Costs and limits ────────────────────────────────────────────────────────────────


def test_an_unknown_parameter_of_a_new_address_is_refused(mine):
    created = failed(mine)
    [record] = mine.get(f"/{created}/deliveries")
    for tail in ("settings", f"deliveries/{record['id']}"):
        message = refused(mine, "GET", f"/{created}/{tail}?limit=5", 400)
        assert message == "limit is not a parameter of this address."


@pytest.mark.usefixtures("no_counts")
@pytest.mark.parametrize("tail", ["deliveries/{}/resend", "resend"])
def test_resends_have_a_rate(product, mine, settings, tail):
    created = failed(mine)
    [record] = mine.get(f"/{created}/deliveries")
    rates = dict.fromkeys(getattr(settings, product.setting), "")
    setattr(settings, product.setting, rates | {"resend": "1/hour"})
    body = {"since": iso(timezone.now() - timedelta(hours=1)), "dry_run": True}
    address = f"/{created}/{tail.format(record['id'])}"
    assert mine.call("POST", address, body).status_code < 300
    assert refused(mine, "POST", address, 429, body).startswith("Too many ")


def test_deliveries_of_others_are_not_there(product, mine, theirs):
    created, other = failed(mine), failed(theirs)
    [record] = theirs.get(f"/{other}/deliveries")
    before = Delivery.objects.count()
    for method, tail in (
        ("GET", f"deliveries/{record['id']}"),
        ("POST", f"deliveries/{record['id']}/resend"),
        ("GET", "deliveries/%00"),
        ("GET", f"deliveries/{product.absent}"),
    ):
        refused(mine, method, f"/{created}/{tail}", 404)
        refused(mine, method, f"/{other}/{tail}", 404)
    refused(mine, "POST", f"/{other}/resend", 404, {"since": "x"})
    assert Delivery.objects.count() == before
    found = ask(mine, "GET", f"/{created}/deliveries?event_id={record['event_id']}")
    assert found["items"] == []
