"""The endpoints' admin: how each is doing at a glance, and operations that are logged POSTs."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.looking import NOWHERE, SCRIPT, looker, page, queries_of
from tests.webhooks_core.making import drain, endpoint, event, only
from webhooks_core import endpoints
from webhooks_core.admin import endpoints as pages
from webhooks_core.admin import health
from webhooks_core.admin.health import HEIGHT, HOURS, Day, Health
from webhooks_core.models import Attempt, Delivery, Endpoint, EndpointSecret
from webhooks_core.secrets import PREFIX

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]

LIST = "/admin/webhooks_core/endpoint/"
OPERATIONS = [
    "send-test",
    "pause",
    "resume",
    "set-limits",
    "rotate-secret",
    "replay-failed",
]


def change(it) -> str:
    return f"{LIST}{it.pk}/change/"


def shown(text) -> list[str]:
    return re.findall(r"<code>(ep_[0-9a-v]{26})</code>", text)


def operate(client, it, name, **fields) -> str:
    answer = client.post(f"{LIST}{it.pk}/{name}/", fields, follow=True)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def attempts(target, outcomes, hours_ago=0.5, ms=10) -> None:
    """Make one delivery with these attempts."""
    event()
    one = Delivery.objects.filter(endpoint=target).latest("pk")
    at = timezone.now() - timedelta(hours=hours_ago)
    Attempt.objects.bulk_create(
        Attempt(
            delivery=one, number=number, started_at=at, duration_ms=ms, outcome=outcome
        )
        for number, outcome in enumerate(outcomes.split(), start=1)
    )


# ── Health ──────────────────────────────────────────────────────────────────────────

NOW = timezone.now()
STATES: dict[Health, dict[str, object]] = {
    Health.HEALTHY: {},
    Health.FAILING: {"consecutive_failures": 1},
    Health.PAUSED: {"paused_at": NOW, "consecutive_failures": 1},
    Health.INACTIVE: {"active": False, "paused_at": NOW},
    Health.DISABLED: {"status": 2, "active": False},
    Health.DELETED: {"deleted_at": NOW, "status": 2},
}


def test_the_word_and_the_filter_agree(admin_client):
    made = {}
    for number, (state, fields) in enumerate(STATES.items()):
        it = endpoint(f"http://127.0.0.1:{number + 1}/")
        Endpoint.objects.filter(pk=it.pk).update(**fields)
        made[state] = it
    for state, it in made.items():
        it.refresh_from_db()
        assert Health.of(it) == state
        text = page(admin_client, f"{LIST}?health={state.name.lower()}")
        assert shown(text) == [it.public_id]
        assert f">{state.value}</span>" in text
    assert set(made) == set(Health)


@pytest.mark.parametrize("query", ["health=x", "health=%00", "product=%00", "q=%00"])
def test_a_hostile_query_is_no_error_of_ours(admin_client, query):
    assert admin_client.get(f"{LIST}?{query}").status_code == 200


def test_a_day_counts_its_attempts_by_hour_and_forgets_older_ones():
    target = endpoint(NOWHERE)
    attempts(target, "http timeout ok", hours_ago=0.5, ms=100)
    attempts(target, "ok", hours_ago=23.5, ms=300)
    attempts(target, "ok", hours_ago=24.5, ms=9000)
    day = health.days([target], now=timezone.now(), deliveries=10)[target.pk]
    assert (day.ok[-1], day.failed[-1]) == (1, 2)
    assert (day.ok[0], day.failed[0]) == (1, 0)
    assert day.attempts == 4
    assert day.success == "50 %"
    assert day.p95_ms == 300


def test_a_day_looks_at_the_newest_deliveries_alone():
    target, other = endpoint(NOWHERE), endpoint(NOWHERE)
    attempts(target, "http")
    attempts(target, "ok")
    found = health.days([target, other], now=timezone.now(), deliveries=1)
    assert (found[target.pk].attempts, found[target.pk].success) == (1, "100 %")
    assert (found[other.pk].attempts, found[other.pk].success) == (0, None)
    assert health.days([], now=timezone.now(), deliveries=1) == {}


def test_one_failure_among_many_is_never_rounded_away():
    day = Day(ok=[0] * 23 + [99_999], failed=[0] * 23 + [1])
    assert day.success == "99.9 %"
    last = day.bars[-1]
    assert last.failed_height == 2
    assert last.ok_height + last.failed_height == HEIGHT
    assert all(bar.ok_height == bar.failed_height == 0 for bar in day.bars[:-1])


def test_no_attempts_make_an_empty_chart():
    nothing = Day(ok=[0] * HOURS, failed=[0] * HOURS)
    assert nothing.success is None
    assert {bar.ok_height for bar in nothing.bars} == {0}


# ── The list ────────────────────────────────────────────────────────────────────────


def test_the_list_costs_the_same_queries_however_long(admin_client):
    counts = []
    for number in (2, 58):
        for _ in range(number):
            target = endpoint(NOWHERE, owner="bob")
        attempts_of(target, 20 * number)
        counts.append(
            [len(queries_of(admin_client, it)) for it in (LIST, change(target))]
        )
    assert counts[0] == counts[1]


def attempts_of(target, number) -> None:
    one = event(owner="bob")
    made = Delivery.objects.bulk_create(
        Delivery(public_id=f"dlv_{target.pk}_{n}", event=one, endpoint=target, copy=n)
        for n in range(1, number)
    )
    Attempt.objects.bulk_create(
        Attempt(delivery=it, number=1, started_at=timezone.now(), outcome="ok")
        for it in made
    )


def test_a_row_tells_health_success_latency_and_failures_in_a_row(admin_client):
    with receiver(500) as it:
        target = endpoint(it.url)
        event()
        drain()
    attempts(target, "ok ok", ms=1234)
    text = page(admin_client, LIST)
    assert ">Failing</span>" in text
    assert "66.6 %" in text
    assert "1,234 ms" in text
    assert "1/3" in text
    assert 'aria-label="2 successful and 1 failed attempts in 24 h"' in text


def test_an_endpoint_is_found_by_id_owner_and_url(admin_client):
    one = endpoint("http://127.0.0.1:8/one", owner="alice")
    endpoint("http://127.0.0.1:8/two", owner="bob")
    for term in (one.public_id, "alic", "/one"):
        text = page(admin_client, f"{LIST}?q={term}")
        assert shown(text) == [one.public_id]


# ── The page ────────────────────────────────────────────────────────────────────────


def test_the_page_tells_what_is_going_on(admin_client):
    with receiver(503) as it:
        target = endpoint(it.url)
        event()
        drain()
    text = page(admin_client, change(target))
    for words in (it.url, "Failing", "1/3", "http 503", "0 %", only().public_id):
        assert words in text


def test_what_strangers_wrote_is_shown_escaped(admin_client):
    target = endpoint(f"{NOWHERE}{SCRIPT}", owner=SCRIPT, description=SCRIPT)
    Endpoint.objects.update(event_types=[SCRIPT])
    endpoints.set_custom_headers(target, {"X-Key": "k-123456"})
    text = page(admin_client, change(target))
    assert SCRIPT not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 4
    assert "X-Key" in text
    assert "k-123456" not in text
    assert SCRIPT not in page(admin_client, LIST)


def test_the_secret_is_shown_nowhere(admin_client):
    target = endpoint(NOWHERE)
    secret = EndpointSecret.objects.get().value
    for address in (LIST, change(target), f"{LIST}{target.pk}/history/"):
        text = page(admin_client, address)
        assert secret.reveal() not in text
        assert secret.ciphertext not in text


def test_unreadable_headers_and_an_unknown_product_are_no_error(admin_client, settings):
    target = endpoint(NOWHERE)
    endpoints.set_custom_headers(target, {"X-Key": "k"})
    Endpoint.objects.update(profile="gone")
    settings.WEBHOOK_SECRET_KEYS = ["A" * 43 + "="]
    assert "none of WEBHOOK_SECRET_KEYS" in page(admin_client, change(target))
    assert "no test event" in operate(admin_client, target, "send-test")
    page(admin_client, LIST)


# ── Operations ──────────────────────────────────────────────────────────────────────


def test_a_test_event_goes_out_and_its_answer_shows_on_its_page(admin_client):
    with receiver(200) as it:
        it.answer = b"thanks"
        target = endpoint(it.url, "thing.lost")
        text = operate(admin_client, target, "send-test")
        assert only().trigger == "test"
        assert "data-reload" in text
        drain()
    text = page(admin_client, f"/admin/webhooks_core/delivery/{only().pk}/change/")
    assert "thanks" in text
    assert "data-reload" not in text
    message = LogEntry.objects.get().change_message
    assert message == f"Sent the test event {only().event.public_id}."


def test_no_test_goes_to_an_endpoint_that_gets_none(admin_client, use_profile):
    target = endpoint(NOWHERE)
    use_profile(enabled=False)
    assert "Nothing was sent" in operate(admin_client, target, "send-test")
    use_profile(ping=None)
    assert "no test event" in operate(admin_client, target, "send-test")
    assert "/send-test/" not in page(admin_client, change(target))
    use_profile()
    Endpoint.objects.update(status=2)
    assert "Nothing was sent" in operate(admin_client, target, "send-test")
    assert not Delivery.objects.exists()
    assert not LogEntry.objects.exists()


def test_limits_are_set_and_told(admin_client):
    target = endpoint(NOWHERE)
    limits = {"max_in_flight": "2", "rate_per_second": "10"}
    text = operate(admin_client, target, "set-limits", **limits)
    assert "From now on: 2 at once, 10 per second." in text
    text = operate(admin_client, target, "set-limits", max_in_flight="3", in_order="on")
    assert "From now on: 1 at once, in order." in text
    target.refresh_from_db()
    assert (target.max_in_flight, target.rate_per_second, target.in_order) == (
        3,
        None,
        True,
    )
    message = LogEntry.objects.latest("pk").change_message
    assert message == "Limited to 1 at once, in order."


@pytest.mark.parametrize("value", ["", "0", "513", "-1", "many", "²"])
def test_limits_that_cannot_be_change_nothing(admin_client, value):
    target = endpoint(NOWHERE)
    text = operate(admin_client, target, "set-limits", max_in_flight=value, in_order="")
    assert "Nothing was changed: max_in_flight" in text
    target.refresh_from_db()
    assert (target.max_in_flight, target.in_order) == (4, False)
    assert not LogEntry.objects.exists()


def test_an_endpoint_is_paused_and_resumed(admin_client, calls):
    target = endpoint(NOWHERE)
    assert "It is not paused." in operate(admin_client, target, "resume")
    assert "Paused: what" in operate(admin_client, target, "pause")
    assert Endpoint.objects.get().paused_at is not None
    assert "paused already" in operate(admin_client, target, "pause")
    assert "/resume/" in page(admin_client, change(target))
    assert "Resumed" in operate(admin_client, target, "resume")
    assert Endpoint.objects.get().paused_at is None
    messages = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert list(messages) == ["Paused.", "Resumed."]


def test_a_new_secret_is_shown_once_and_the_old_one_overlaps(admin_client):
    target = endpoint(NOWHERE)
    (old,) = target.secrets(now=timezone.now())
    answer = admin_client.post(f"{LIST}{target.pk}/rotate-secret/", {"hours": "2"})
    fresh = Endpoint.objects.get()
    new, kept = fresh.secrets(now=timezone.now())
    assert kept == old
    assert fresh.secrets(now=timezone.now() + timedelta(hours=3)) == [new]
    shown = unescape(answer.content.decode())
    assert new.startswith(PREFIX)
    assert new in shown
    assert old not in shown
    assert "no-store" in answer.headers["Cache-Control"]
    assert LogEntry.objects.get().change_message == "Rotated the secret; overlap 2 h."
    for address in (change(target), f"{LIST}{target.pk}/history/"):
        assert new not in unescape(page(admin_client, address))


@pytest.mark.parametrize("hours", ["", "-1", "169", "1.5", "²", "9" * 40, "\0"])
def test_a_faulty_overlap_rotates_nothing(admin_client, hours):
    target = endpoint(NOWHERE)
    text = operate(admin_client, target, "rotate-secret", hours=hours)
    assert "0 to 168 whole hours" in text
    assert EndpointSecret.objects.count() == 1


def test_a_secret_from_the_configuration_is_not_rotated_here(admin_client):
    target = endpoint(NOWHERE)
    Endpoint.objects.update(static_key="k")
    text = operate(admin_client, target, "rotate-secret", hours="1")
    assert "configuration file" in text
    assert EndpointSecret.objects.count() == 1
    assert "/rotate-secret/" not in page(admin_client, change(target))


@pytest.fixture
def failed(use_profile):
    """Three deliveries that failed for good."""
    use_profile(retry=use_profile().retry.__class__(()), disable_after=None)
    with receiver(500) as it:
        target = endpoint(it.url)
        for _ in range(3):
            event()
        drain()
    return target


def test_a_replay_is_counted_first_and_then_queued(admin_client, failed):
    text = page(admin_client, f"{change(failed)}?hours=24")
    assert "3 failed since" in text
    assert Delivery.objects.count() == 3
    (since,) = re.findall(r'name="since" value="([^"]+)"', text)
    text = operate(admin_client, failed, "replay-failed", since=unescape(since))
    assert "Queued 3 again" in text
    assert Delivery.objects.filter(trigger="replay").count() == 3
    assert LogEntry.objects.get().change_message.startswith("Replayed 3 failed since")
    assert "Nothing failed since" in page(admin_client, f"{change(failed)}?hours=24")


def test_too_many_to_replay_are_left_to_the_command(admin_client, failed, monkeypatch):
    monkeypatch.setattr(pages, "REPLAYED_AT_ONCE", 2)
    text = page(admin_client, f"{change(failed)}?hours=24")
    assert f"webhooks_replay --endpoint {failed.public_id} --since" in text
    assert 'name="since"' not in text
    since = (timezone.now() - timedelta(hours=1)).isoformat()
    text = operate(admin_client, failed, "replay-failed", since=since)
    assert "more than 2 at once" in text
    assert Delivery.objects.count() == 3


@pytest.mark.parametrize("since", ["", "x", "2026-13-01T00:00Z", "2026-01-01T00:00"])
def test_a_replay_needs_a_time(admin_client, failed, since):
    text = operate(admin_client, failed, "replay-failed", since=since)
    assert "Count first" in text
    assert Delivery.objects.count() == 3


@pytest.mark.parametrize("hours", ["", "2", "-1", "x", "%00"])
def test_only_the_times_on_offer_are_counted(admin_client, failed, hours):
    assert "failed since" not in page(admin_client, f"{change(failed)}?hours={hours}")


def test_nothing_is_replayed_to_a_disabled_endpoint(admin_client, failed):
    Endpoint.objects.update(status=2)
    since = (timezone.now() - timedelta(hours=1)).isoformat()
    text = operate(admin_client, failed, "replay-failed", since=since)
    assert "disabled or inactive" in text
    assert Delivery.objects.count() == 3


@pytest.mark.parametrize("name", OPERATIONS)
def test_nothing_is_done_to_what_is_deleted(admin_client, name):
    target = endpoint(NOWHERE)
    endpoints.delete(target)
    before = Endpoint.objects.values().get()
    text = operate(admin_client, target, name, hours="1", since="2026-01-01T00:00Z")
    assert "The endpoint is deleted." in text
    assert Endpoint.objects.values().get() == before
    assert not LogEntry.objects.exists()
    assert f"/{name}/" not in page(admin_client, change(target))


@pytest.mark.parametrize("name", OPERATIONS)
def test_who_may_only_look_and_a_get_do_nothing(client, admin_client, name):
    target = endpoint(NOWHERE)
    before = Endpoint.objects.values().get()
    address = f"{LIST}{target.pk}/{name}/"
    assert admin_client.get(address).status_code == 405
    looker(client, ["view_endpoint", "view_delivery"])
    assert f"/{name}/" not in page(client, change(target))
    assert client.post(address, {"hours": "1"}).status_code == 403
    assert Endpoint.objects.values().get() == before
    assert EndpointSecret.objects.count() == 1
    assert not LogEntry.objects.exists()


def test_an_endpoint_is_neither_made_nor_edited_nor_deleted(admin_client):
    target = endpoint(NOWHERE)
    before = Endpoint.objects.values().get()
    for address in (change(target), f"{LIST}add/", f"{LIST}{target.pk}/delete/"):
        assert admin_client.post(address, {"url": "x"}).status_code == 403
    assert Endpoint.objects.values().get() == before


def test_who_may_not_look_sees_nothing(client):
    target = endpoint(NOWHERE)
    looker(client)
    for address in (LIST, change(target)):
        page(client, address, 403)
