"""The deliveries' admin: found by id, shown in full and escaped, resent by POST alone."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.looking import NOWHERE, SCRIPT, looker, page, queries_of
from tests.webhooks_core.making import drain, endpoint, event, only
from webhooks_core import endpoints
from webhooks_core.admin import base, deliveries, showing
from webhooks_core.models import Attempt, Delivery, Endpoint, EndpointSecret, Event
from webhooks_core.publishing import publish
from webhooks_core.signing import sha256_signature

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]

LIST = "/admin/webhooks_core/delivery/"


def change(delivery) -> str:
    return f"{LIST}{delivery.pk}/change/"


def shown_ids(text) -> list[str]:
    return re.findall(r"<code>(dlv_\w+)</code><br>", text)


def block(text, name) -> str:
    """Return the text of an element as a browser shows it."""
    found = re.search(rf'<pre id="{name}"[^>]*>(.*?)</pre>', text, re.DOTALL)
    assert found
    return unescape(found[1])


def make(number) -> None:
    """Make deliveries with two attempts each, all for one endpoint of their own."""
    target, one = endpoint(NOWHERE), event()
    Delivery.objects.all().delete()
    Delivery.objects.bulk_create(
        Delivery(public_id=f"dlv_{n}", event=one, endpoint=target, copy=n, attempts=2)
        for n in range(number)
    )
    Attempt.objects.bulk_create(
        Attempt(
            delivery=it,
            number=n,
            started_at=timezone.now(),
            duration_ms=10 * n,
            outcome="http",
            code=500 + n,
        )
        for it in Delivery.objects.all()
        for n in (1, 2)
    )


# ── The list ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "query", ["", "?error=http", "?status__exact=0&type=x", "?p=2"]
)
def test_the_list_costs_the_same_queries_however_long(admin_client, query):
    counts = []
    for number in (60, 1000):
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


def test_the_list_ends_where_its_pages_end_and_says_so(admin_client, monkeypatch):
    make(120)
    assert "120 deliveries" in page(admin_client, LIST)
    monkeypatch.setattr(base, "LISTED_AT_MOST", 100)
    assert "the newest 100 deliveries" in page(admin_client, LIST)
    assert len(shown_ids(page(admin_client, f"{LIST}?p=2"))) == 50
    assert admin_client.get(f"{LIST}?p=3").status_code == 302
    assert admin_client.get(f"{LIST}?all=").status_code == 200


def test_a_row_tells_status_type_error_latency_and_the_next_attempt(admin_client):
    with receiver(503) as it:
        target = endpoint(it.url)
        event()
        drain()
    one, attempt = only(), Attempt.objects.get()
    text = page(admin_client, LIST)
    assert one.public_id in text
    assert target.public_id in text
    assert "Retrying" in text
    assert "http 503" in text
    assert "thing.made" in text
    assert f"{attempt.duration_ms:,} ms" in text
    assert f"{one.next_attempt_at:%Y-%m-%d %H:%M:%S}" in text


@pytest.mark.parametrize(
    ("change_of", "word"),
    [
        ({"paused_at": timezone.now()}, "paused"),
        ({"status": Endpoint.Status.DISABLED}, "disabled"),
        ({"active": False}, "inactive"),
    ],
)
def test_what_waits_for_its_endpoint_is_held_and_not_due(admin_client, change_of, word):
    make(1)
    at = timezone.now() + timedelta(days=1)
    Delivery.objects.update(next_attempt_at=at)
    Endpoint.objects.update(**change_of)
    one, due = only(), f"{at:%Y-%m-%d %H:%M:%S}"
    for address in (LIST, change(one)):
        text = page(admin_client, address)
        assert ">Held<" in text
        assert ">Retrying<" not in text
        assert not re.search(rf"<time[^>]*>{due}", text)
    assert f"while the endpoint is {word}" in page(admin_client, change(one))
    target = f"/admin/webhooks_core/endpoint/{one.endpoint_id}/change/"
    assert ">Held<" in page(admin_client, target)


def test_an_error_that_repeats_its_result_is_not_told_twice():
    told = Attempt(outcome="http", code=503, error="HTTP 503")
    more = Attempt(outcome="connect", error="the connection was refused")
    steps = showing.timeline([told, more])
    assert [it.error for it in steps] == ["", "the connection was refused"]


@pytest.mark.parametrize("of", ["delivery", "event", "endpoint"])
def test_a_delivery_is_found_by_each_of_its_ids(admin_client, of):
    for port in (8, 9):
        endpoint(f"http://127.0.0.1:{port}/", owner=f"owner{port}")
        event(owner=f"owner{port}")
    one = Delivery.objects.select_related("event", "endpoint").earliest("pk")
    terms = {
        "delivery": one.public_id,
        "event": one.event.public_id,
        "endpoint": one.endpoint.public_id,
    }
    text = page(admin_client, f"{LIST}?q=%20{terms[of]}%20")
    assert shown_ids(text) == [one.public_id]


@pytest.mark.parametrize("term", ["dlv_nothing", "dlv_", "%25", "x" * 5000, "é"])
def test_an_unknown_id_finds_nothing(admin_client, term):
    make(3)
    assert shown_ids(page(admin_client, f"{LIST}?q={term}")) == []


@pytest.mark.parametrize(
    "query", ["q=%00", "error=%00", "type=%00", "status__exact=%00"]
)
def test_a_hostile_query_is_no_error_of_ours(admin_client, query):
    assert admin_client.get(f"{LIST}?{query}").status_code in {200, 302}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("error=http", 1),
        ("error=dns", 0),
        ("type=thing.made", 1),
        ("type=thing.lost", 0),
        ("status__exact=2", 1),
        ("status__exact=1", 0),
        ("trigger__exact=event", 1),
    ],
)
def test_the_list_is_filtered(admin_client, use_profile, query, found):
    use_profile(retry=use_profile().retry.__class__(()))
    with receiver(500) as it:
        endpoint(it.url)
        event()
        drain()
    assert len(shown_ids(page(admin_client, f"{LIST}?{query}"))) == found


# ── The page ────────────────────────────────────────────────────────────────────────


def test_what_strangers_sent_is_shown_escaped(admin_client):
    with receiver(500) as it:
        it.answer = SCRIPT.encode()
        endpoint(f"{it.url}?{SCRIPT}")
        publish(
            profile="plain", owner="alice", event_type="thing.made", data={"x": SCRIPT}
        )
        drain()
    assert bytes(Attempt.objects.get().answer) == SCRIPT.encode()
    text = page(admin_client, change(only()))
    assert SCRIPT not in text
    # Answer, url, exact body, readable body, curl (url and body).
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 6
    assert SCRIPT not in page(admin_client, LIST)


def test_the_body_is_there_to_the_byte_and_to_read(admin_client):
    endpoint(NOWHERE)
    publish(
        profile="plain", owner="alice", event_type="thing.made", data={"b": 1, "a": "é"}
    )
    raw = bytes(Event.objects.get().body)
    text = page(admin_client, change(only()))
    assert block(text, "body") == raw.decode()
    assert '"b": 1,\n    "a": "é"' in unescape(text)
    answer = admin_client.get(f"{LIST}{only().pk}/body/")
    assert answer.content == raw
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith("attachment;")


def test_a_long_body_is_cut_on_the_page_and_whole_in_the_download(admin_client):
    endpoint(NOWHERE)
    data = {"x": "z" * 100_000}
    publish(profile="plain", owner="alice", event_type="thing.made", data=data)
    text = page(admin_client, change(only()))
    assert text.count("z") < 50_000
    assert f"--data-binary @{Event.objects.get().public_id}.json" in text
    whole = admin_client.get(f"{LIST}{only().pk}/body/").content
    assert whole == bytes(Event.objects.get().body)


@pytest.mark.parametrize("raw", [b"\xff\xfe nonsense", b"[" * 5000, b""])
def test_a_body_that_is_no_json_is_shown_as_it_is(admin_client, raw):
    endpoint(NOWHERE)
    event()
    Event.objects.update(body=raw)
    text = page(admin_client, change(only()))
    assert block(text, "body") == raw.decode("utf-8", "backslashreplace")
    assert "For reading" not in text


def test_curl_sends_what_the_engine_would_send(admin_client):
    target = endpoint(NOWHERE)
    publish(
        profile="plain",
        owner="alice",
        event_type="thing.made",
        data={"x": "it's $HOME"},
    )
    command = block(page(admin_client, change(only())), "curl")
    words = shlex.split(command.replace("\\\n", " "))
    raw = bytes(Event.objects.get().body)
    assert words[-2:] == ["--data-raw", raw.decode()]
    sent = dict(word.split(": ", 1) for word in words if re.match(r"[\w-]+: ", word))
    (secret,) = target.secrets(now=timezone.now())
    assert sent["X-Signature"] == sha256_signature(
        secret, int(sent["X-Timestamp"]), raw
    )
    assert sent["X-Delivery"] == only().public_id
    assert target.url in words


def test_neither_secret_nor_ciphertext_nor_own_header_is_ever_shown(admin_client):
    target = endpoint(NOWHERE)
    endpoints.set_custom_headers(target, {"X-Api-Key": "k-123456"})
    event()
    secret = EndpointSecret.objects.get().value
    text = page(admin_client, change(only()))
    assert secret.reveal() not in text
    assert secret.ciphertext not in text
    assert "k-123456" not in text
    assert f"X-Api-Key: {showing.HIDDEN}" in unescape(text)


def test_an_unreadable_secret_is_told_and_no_error(admin_client, settings):
    endpoint(NOWHERE)
    event()
    settings.WEBHOOK_SECRET_KEYS = ["A" * 43 + "="]
    assert "This cannot be signed" in page(admin_client, change(only()))


def test_the_timeline_tells_each_attempt_and_what_comes_next(admin_client):
    with receiver(500) as it:
        endpoint(it.url)
        event()
        text = page(admin_client, change(only()))
        assert "No attempt has ended yet" in text
        drain()
    text = page(admin_client, change(only()))
    assert "http 500" in text
    assert "next attempt at" in text
    assert re.search(r"1\s+of 3", text)


# ── Read-only, but for one operation ────────────────────────────────────────────────


def test_history_is_neither_made_nor_edited_nor_deleted(admin_client):
    endpoint(NOWHERE)
    event()
    before = Delivery.objects.values().get()
    fields = {"status": 1, "_save": "Save"}
    assert admin_client.post(change(only()), fields).status_code == 403
    assert admin_client.get(f"{LIST}add/").status_code == 403
    assert admin_client.post(f"{LIST}add/", fields).status_code == 403
    assert admin_client.post(f"{LIST}{only().pk}/delete/", fields).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [only().pk]}
    admin_client.post(LIST, chosen)
    assert Delivery.objects.values().get() == before


def test_resending_queues_a_copy_and_is_logged(admin_client):
    endpoint(NOWHERE)
    event()
    first = only()
    answer = admin_client.post(f"{LIST}{first.pk}/resend/")
    made = Delivery.objects.get(trigger="replay")
    assert answer.headers["Location"] == change(made)
    entry = LogEntry.objects.get()
    assert entry.object_id == str(first.pk)
    assert entry.change_message == f"Resent as {made.public_id}."
    assert f"Queued again as {made.public_id}." in page(admin_client, change(made))
    assert made.public_id in page(admin_client, change(first))


def test_chosen_deliveries_are_resent_oldest_first(admin_client):
    endpoint(NOWHERE)
    pks = [event().delivery_set.get().pk for _ in range(3)]
    chosen = {"action": "resend_selected", "_selected_action": pks}
    answer = admin_client.post(LIST, chosen, follow=True)
    assert "Queued 3 of 3 again." in answer.content.decode()
    copies = Delivery.objects.filter(copy=1).order_by("pk")
    firsts = Delivery.objects.filter(copy=0).order_by("pk")
    assert [it.event_id for it in copies] == [it.event_id for it in firsts]
    assert LogEntry.objects.count() == 3


def test_too_many_at_once_are_refused(admin_client, monkeypatch):
    make(3)
    monkeypatch.setattr(deliveries, "RESENT_AT_ONCE", 2)
    first = Delivery.objects.earliest("pk").pk
    chosen = {
        "action": "resend_selected",
        "_selected_action": [first],
        "select_across": 1,
    }
    answer = admin_client.post(LIST, chosen, follow=True)
    assert "choose at most 2 at once" in answer.content.decode()
    assert Delivery.objects.count() == 3


def test_nothing_is_resent_to_an_endpoint_that_is_gone(admin_client):
    target = endpoint(NOWHERE)
    event()
    endpoints.delete(target)
    answer = admin_client.post(f"{LIST}{only().pk}/resend/", follow=True)
    assert "Nothing was queued" in answer.content.decode()
    chosen = {"action": "resend_selected", "_selected_action": [only().pk]}
    answer = admin_client.post(LIST, chosen, follow=True)
    assert "Queued 0 of 1 again." in answer.content.decode()
    assert Delivery.objects.count() == 1
    assert not LogEntry.objects.exists()


def test_a_get_resends_nothing(admin_client):
    endpoint(NOWHERE)
    event()
    answer = admin_client.get(f"{LIST}{only().pk}/resend/")
    assert answer.status_code == 405
    assert answer.headers["Allow"] == "POST"
    assert Delivery.objects.count() == 1


def test_who_may_only_look_sees_all_and_resends_nothing(client):
    endpoint(NOWHERE)
    event()
    looker(client, ["view_delivery"])
    text = page(client, change(only()))
    assert "/resend/" not in text
    assert "resend_selected" not in page(client, LIST)
    assert client.post(f"{LIST}{only().pk}/resend/").status_code == 403
    chosen = {"action": "resend_selected", "_selected_action": [only().pk]}
    client.post(LIST, chosen)
    assert Delivery.objects.count() == 1


def test_who_may_not_look_sees_nothing(client):
    endpoint(NOWHERE)
    event()
    looker(client)
    for address in (LIST, change(only()), f"{LIST}{only().pk}/body/"):
        page(client, address, 403)
    client.logout()
    answer = client.get(f"{LIST}{only().pk}/body/")
    assert answer.status_code == 302
    assert "/admin/login/" in answer.headers["Location"]


@pytest.mark.parametrize("pk", [999, 2**63, 2**200])
def test_what_is_not_there_is_not_found(admin_client, pk):
    assert admin_client.post(f"{LIST}{pk}/resend/").status_code == 404
    assert admin_client.get(f"{LIST}{pk}/body/").status_code == 404
    assert admin_client.get(f"{LIST}{pk}/change/").status_code == 302


def test_the_page_answers_without_a_product_of_its_name(admin_client):
    endpoint(NOWHERE)
    event()
    Endpoint.objects.update(profile="gone")
    assert "This cannot be signed" in page(admin_client, change(only()))
    answer = admin_client.post(f"{LIST}{only().pk}/resend/", follow=True)
    assert "Nothing was queued" in answer.content.decode()
