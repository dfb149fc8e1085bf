"""The list of deliveries: found by id, filtered, and never costlier for being long."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
import time_machine
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.admin.delivery_pages import LIST, change, make, shown_ids
from tests.webhooks_core.admin.looking import page, queries_of
from tests.webhooks_core.engine import dispatch, only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.admin import base, display
from webhooks_core.models import Attempt, Delivery, Endpoint

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


@pytest.mark.parametrize(
    "query",
    [
        *("", "?error=http", "?status__exact=0&type=x", "?p=2"),
        *("?status__exact=0", "?status__exact=suspended", "?created=24h"),
    ],
)
def test_the_list_costs_the_same_queries_however_long(admin_client, query):
    counts = []
    for number in (60, 120):
        make(number)
        counts.append(len(queries_of(admin_client, LIST + query)))
    assert counts[0] == counts[1]


def test_the_list_reads_no_bodies_and_counts_nothing_without_a_bound(admin_client):
    make(60)
    queries = queries_of(admin_client, LIST)
    assert not any('"body"' in sql or '"answer"' in sql for sql in queries)
    counting = [sql for sql in queries if "COUNT(" in sql]
    assert counting
    assert all(f"LIMIT {base.LISTED_AT_MOST}" in sql for sql in counting)


def test_the_list_shows_that_it_is_cut_at_its_last_page(admin_client, monkeypatch):
    make(120)
    assert "120 deliveries" in page(admin_client, LIST)
    monkeypatch.setattr(base, "LISTED_AT_MOST", 100)
    assert "the newest 100 deliveries" in page(admin_client, LIST)
    assert len(shown_ids(page(admin_client, f"{LIST}?p=2"))) == 50
    assert admin_client.get(f"{LIST}?p=3").status_code == 302
    assert admin_client.get(f"{LIST}?all=").status_code == 200


def test_a_row_shows_status_type_error_latency_and_the_next_attempt(admin_client):
    with receiver(503) as server:
        target = EndpointFactory.create(url=server.url)
        publish_event()
        dispatch()
    delivery, attempt = only_delivery(), Attempt.objects.get()
    text = page(admin_client, LIST)
    for words in (
        *(delivery.public_id, target.public_id, "Retrying", "http 503", "thing.made"),
        f"{attempt.duration_ms:,} ms",
        f"{delivery.next_attempt_at:%Y-%m-%d %H:%M:%S}",
    ):
        assert words in text


SUSPENDING = [
    ({"paused_at": timezone.now()}, "paused"),
    ({"status": Endpoint.Status.DISABLED}, "disabled"),
    ({"active": False}, "inactive"),
]


@pytest.mark.parametrize(("change_of", "word"), SUSPENDING)
def test_a_delivery_that_waits_for_its_endpoint_is_suspended_and_not_due(
    admin_client, change_of, word
):
    make(1)
    at = timezone.now() + timedelta(days=1)
    Delivery.objects.update(next_attempt_at=at)
    Endpoint.objects.update(**change_of)
    delivery, due = only_delivery(), f"{at:%Y-%m-%d %H:%M:%S}"
    for address in (LIST, change(delivery)):
        text = page(admin_client, address)
        assert ">Suspended<" in text
        assert ">Retrying<" not in text
        assert not re.search(rf"<time[^>]*>{due}", text)
    assert f"while the endpoint is {word}" in page(admin_client, change(delivery))
    target = f"/admin/webhooks_core/endpoint/{delivery.endpoint_id}/change/"
    assert ">Suspended<" in page(admin_client, target)


@pytest.mark.parametrize(("change_of", "word"), SUSPENDING)
def test_a_suspended_delivery_has_its_own_filter_and_is_not_pending(
    admin_client, change_of, word
):
    make(2)
    Endpoint.objects.update(**change_of)
    held, sending = Delivery.objects.order_by("pk")
    Delivery.objects.filter(pk=sending.pk).update(claimed_by=1)
    target = EndpointFactory.create(owner="bob")
    publish_event(owner="bob")
    tried = Delivery.objects.get(endpoint=target)
    for status, rows in (("suspended", [held]), ("0", [tried, sending])):
        ids = shown_ids(page(admin_client, f"{LIST}?status__exact={status}"))
        assert ids == [row.public_id for row in rows]


def test_an_error_that_repeats_its_result_is_not_shown_twice():
    repeated = Attempt(outcome="http", status_code=503, error="HTTP 503")
    different = Attempt(outcome="connect", error="the connection was refused")
    steps = display.timeline([repeated, different])
    assert [step.error for step in steps] == ["", "the connection was refused"]


@pytest.mark.parametrize("of", ["delivery", "event", "endpoint"])
def test_a_delivery_is_found_by_each_of_its_ids(admin_client, of):
    for port in (8, 9):
        EndpointFactory.create(url=f"http://127.0.0.1:{port}/", owner=f"owner{port}")
        publish_event(owner=f"owner{port}")
    delivery = Delivery.objects.select_related("event", "endpoint").earliest("pk")
    terms = {
        "delivery": delivery.public_id,
        "event": delivery.event.public_id,
        "endpoint": delivery.endpoint.public_id,
    }
    text = page(admin_client, f"{LIST}?q=%20{terms[of]}%20")
    assert shown_ids(text) == [delivery.public_id]


@pytest.mark.parametrize("term", ["dlv_nothing", "dlv_", "%25", "x" * 5000, "é"])
def test_an_unknown_id_finds_nothing(admin_client, term):
    make(3)
    assert shown_ids(page(admin_client, f"{LIST}?q={term}")) == []


@pytest.mark.parametrize(
    "query", ["q=%00", "error=%00", "type=%00", "status__exact=%00"]
)
def test_a_hostile_query_is_not_a_server_error(admin_client, query):
    assert admin_client.get(f"{LIST}?{query}").status_code in {200, 302}


def test_the_list_is_filtered(admin_client):
    make(1)
    Delivery.objects.all().fail(error="over")
    one = ["error=http", "type=thing.made", "status__exact=2", "trigger__exact=event"]
    none = [f"status__exact={value}" for value in ("0", "1", "9", "suspended")]
    none += ["error=dns", "type=thing.lost", "trigger__exact=test"]
    for query in (*one, *none):
        found = len(shown_ids(page(admin_client, f"{LIST}?{query}")))
        assert (query, found) == (query, query in one)


# ── Titles, filters that a link has set, and what is older ──────────────────────────


def heading(text: str) -> str:
    found = re.search(r"<h1>(.*?)</h1>", text, re.DOTALL)
    assert found
    return unescape(found[1]).strip()


def chips(text: str) -> dict[str, str]:
    """Return the address that leaves each filter out."""
    pattern = r'<a class="chip"\s+href="([^"]*)"[^>]*>([^<]+)'
    found = re.findall(pattern, text)
    return {unescape(name).strip(): unescape(href) for href, name in found}


def test_the_title_says_what_the_list_shows(admin_client):
    target = EndpointFactory.create(url="http://127.0.0.1:9/hooks/acme?token=x")
    publish_event()
    assert heading(page(admin_client, LIST)) == "Deliveries"
    query = f"?q={target.public_id}&status__exact=2&created=1h"
    text = page(admin_client, LIST + query)
    expected = "Failed deliveries to 127.0.0.1:9/hooks/acme, created: the last 1 hour"
    assert heading(text) == expected
    assert "token=x" not in text


def test_each_filter_of_a_link_is_seen_and_can_be_left_out(admin_client):
    target = EndpointFactory.create(url="http://127.0.0.1:9/hooks")
    query = f"?q={target.public_id}&status__exact=2&code=503&error=http"
    shown = chips(page(admin_client, LIST + query))
    assert set(shown) == {
        *("status: Failed", "response: 503", "error class: http"),
        "to 127.0.0.1:9/hooks",
    }
    assert "status__exact" not in shown["status: Failed"]
    assert "code=503" in shown["status: Failed"]
    assert chips(page(admin_client, LIST)) == {}


def test_the_response_of_the_last_attempt_narrows_the_list(admin_client):
    with receiver(503, 404) as server:
        EndpointFactory.create(url=server.url, max_in_flight=1)
        publish_event()
        publish_event()
        dispatch()
    by_code = {row.last_error: row.public_id for row in Delivery.objects.all()}
    assert set(by_code) == {"HTTP 503", "HTTP 404"}
    for code, error in (("503", "HTTP 503"), ("5", "HTTP 503"), ("4", "HTTP 404")):
        assert shown_ids(page(admin_client, f"{LIST}?code={code}")) == [by_code[error]]
    for hostile in ("9", "50", "x", "%00"):
        assert shown_ids(page(admin_client, f"{LIST}?code={hostile}")) == []


def test_a_range_of_time_narrows_the_list_by_ids(admin_client):
    EndpointFactory.create()
    times = [timezone.now() - timedelta(days=days) for days in (3, 2, 1)]
    for at in times:
        with time_machine.travel(at, tick=False):
            publish_event()
    rows = list(Delivery.objects.order_by("pk").values_list("public_id", flat=True))
    begin, end = (f"{at - timedelta(hours=1):%Y-%m-%dT%H:%M}" for at in times[1:])
    assert shown_ids(page(admin_client, f"{LIST}?created={begin}..{end}")) == [rows[1]]
    assert shown_ids(page(admin_client, f"{LIST}?created={begin}..")) == rows[:0:-1]
    assert shown_ids(page(admin_client, f"{LIST}?created=..{end}")) == rows[1::-1]
    assert shown_ids(page(admin_client, f"{LIST}?created=7d")) == rows[::-1]
    assert shown_ids(page(admin_client, f"{LIST}?created=1h")) == []
    for hostile in ("x", "..", "0001-01-01..", "..9999-12-31", "%00..%00"):
        assert shown_ids(page(admin_client, f"{LIST}?created={hostile}")) == []


@pytest.mark.parametrize("query", ["", "status__exact=0", "type=thing.made"])
def test_what_is_older_than_the_last_page_is_a_link_away(
    admin_client, monkeypatch, query
):
    make(25)
    monkeypatch.setattr(base, "LISTED_AT_MOST", 10)
    expected = list(
        Delivery.objects.order_by("-pk").values_list("public_id", flat=True)
    )
    seen, address = [], f"{LIST}?{query}"
    for _ in range(3):
        text = page(admin_client, address)
        seen += shown_ids(text)
        found = re.search(r'<a href="([^"]+)" class="older">', text)
        address = LIST + unescape(found[1]) if found else ""
    assert seen == expected
    assert address == ""
    assert shown_ids(page(admin_client, f"{LIST}?before={'9' * 30}"))
