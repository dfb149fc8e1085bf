"""What an operator may do about an endpoint: POSTs that need a permission and are logged."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.admin.endpoint_pages import LIST, OPERATIONS, change, operate
from tests.webhooks_core.admin.looking import looker, nothing_changes, page
from tests.webhooks_core.engine import dispatch, only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core import endpoints
from webhooks_core.admin import resending
from webhooks_core.models import Delivery, Endpoint, EndpointSecret
from webhooks_core.signing.schemes import PREFIX

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def test_a_test_event_is_sent_and_its_page_shows_the_response(admin_client):
    with receiver(200) as server:
        server.answer = b"thanks"
        target = EndpointFactory.create(url=server.url, event_types=["thing.lost"])
        text = operate(admin_client, target, "send-test")
        assert only_delivery().trigger == "test"
        assert "data-reload" in text
        dispatch()
    text = page(
        admin_client, f"/admin/webhooks_core/delivery/{only_delivery().pk}/change/"
    )
    assert "thanks" in text
    assert "data-reload" not in text
    message = LogEntry.objects.get().change_message
    assert message == f"Sent the test event {only_delivery().event.public_id}."


ANY = {"hours": "1", "since": "2026-01-01T00:00Z"}
REFUSED: list[tuple[dict[str, Any], str, dict[str, str], str]] = [
    ({}, "enable", {}, "It is not disabled."),
    ({}, "resume", {}, "It is not paused."),
    ({"paused_at": timezone.now()}, "pause", {}, "It is paused already."),
    ({"status": 2}, "send-test", {}, "Nothing was sent: the endpoint is disabled"),
    ({"profile": "gone"}, "send-test", {}, "its product has no test event"),
    ({"static_key": "k"}, "rotate-secret", ANY, "configuration file"),
    ({"static_key": "k"}, "set-trusted", ANY, "may always go there"),
    ({"status": 2}, "replay-failed", ANY, "the endpoint is disabled or inactive"),
    *(
        ({}, "rotate-secret", {"hours": value}, "must be 0 to 168 whole hours")
        for value in ("", "-1", "169", "1.5", "²", "9" * 40, "\0")
    ),
    *(
        ({}, "replay-failed", {"since": value}, "Count first")
        for value in ("", "x", "2026-13-01T00:00Z", "2026-01-01T00:00")
    ),
    *(
        ({"deleted_at": timezone.now()}, name, ANY, "The endpoint is deleted.")
        for name in OPERATIONS
    ),
]


@pytest.mark.parametrize(("state", "name", "form", "words"), REFUSED)
def test_what_cannot_be_done_says_why_and_changes_nothing(
    admin_client, state, name, form, words
):
    target = EndpointFactory.create()
    publish_event()
    Delivery.objects.all().fail(error="over")
    Endpoint.objects.update(**state)
    with nothing_changes():
        assert words in operate(admin_client, target, name, **form)
    if name in {"enable", "resume", "pause", "rotate-secret"} and state:
        assert f"/{name}/" not in page(admin_client, change(target))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"enabled": False}, "Nothing was sent: the endpoint is disabled"),
        ({"ping": None}, "its product has no test event"),
    ],
)
def test_a_product_may_be_switched_off_or_have_no_test_event(
    admin_client, use_profile, fields, words
):
    target = EndpointFactory.create()
    use_profile(**fields)
    with nothing_changes():
        assert words in operate(admin_client, target, "send-test")
    shown = "/send-test/" in page(admin_client, change(target))
    assert shown == ("ping" not in fields)


def test_an_endpoint_is_paused_and_resumed(admin_client, calls):
    target = EndpointFactory.create()
    text = operate(admin_client, target, "pause")
    assert "Paused: events published from now on wait." in text
    assert Endpoint.objects.get().paused_at is not None
    assert "/resume/" in text
    assert "Resumed" in operate(admin_client, target, "resume")
    assert Endpoint.objects.get().paused_at is None
    messages = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert list(messages) == ["Paused.", "Resumed."]


@pytest.mark.spec("recording", "an operator may enable a disabled endpoint")
def test_a_disabled_endpoint_is_enabled_and_receives_its_waiting_deliveries(
    admin_client,
):
    with receiver(204) as server:
        target = EndpointFactory.create(url=server.url)
        publish_event()
        assert "/enable/" not in page(admin_client, change(target))
        Endpoint.objects.update(status=2, consecutive_failures=3)
        Delivery.objects.update(next_attempt_at=timezone.now() + timedelta(hours=1))
        assert dispatch() == 0
        assert "/enable/" in page(admin_client, change(target))
        text = operate(admin_client, target, "enable")
        assert "Enabled: pending deliveries are sent now." in text
        target.refresh_from_db()
        assert (target.status, target.consecutive_failures) == (1, 0)
        assert LogEntry.objects.get().change_message == "Enabled."
        assert dispatch() == 1
    assert len(server.requests) == 1


def test_a_new_secret_is_shown_once_and_the_old_one_overlaps(admin_client):
    target = EndpointFactory.create()
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


CONFIRM = LIST + "{}/rotate-secret/confirm/"


def test_a_rotation_is_confirmed_on_its_own_page(admin_client):
    target = EndpointFactory.create()
    assert CONFIRM.format(target.pk) in page(admin_client, change(target))
    asked = page(admin_client, CONFIRM.format(target.pk))
    assert target.url in asked
    assert 'name="hours"' in asked
    assert "two signatures" in asked
    assert EndpointSecret.objects.count() == 1


def test_a_product_with_one_signature_offers_no_overlap_and_explains_the_effect(
    admin_client, use_profile
):
    use_profile(signature_scheme="sha256")
    target = EndpointFactory.create()
    asked = page(admin_client, CONFIRM.format(target.pk))
    assert 'name="hours"' not in asked
    assert "The old secret ends at once." in asked
    assert "After 3 failures in a row the endpoint is disabled." in asked
    for fields in ({}, {"hours": "24"}):
        shown = operate(admin_client, target, "rotate-secret", **fields)
        assert "with this secret alone" in shown
        assert len(Endpoint.objects.get().secrets(now=timezone.now())) == 1
    messages = LogEntry.objects.values_list("change_message", flat=True)
    assert set(messages) == {"Rotated the secret; overlap 0 h."}


def followed(client, address) -> str:
    return unescape(client.get(address, follow=True).content.decode())


def test_an_impossible_rotation_has_no_confirmation_page(admin_client, client):
    target = EndpointFactory.create()
    address = CONFIRM.format(target.pk)
    assert client.get(address).status_code == 302
    looker(client, ["view_endpoint"])
    assert client.get(address).status_code == 403
    assert admin_client.get(CONFIRM.format(999)).status_code == 404
    Endpoint.objects.update(static_key="k")
    assert "configuration file" in followed(admin_client, address)
    endpoints.delete(target)
    assert "is deleted" in followed(admin_client, address)


def test_the_endpoint_of_a_product_that_is_not_installed_is_rotated(admin_client):
    target = EndpointFactory.create()
    Endpoint.objects.update(profile="gone")
    assert "with this secret alone" in operate(admin_client, target, "rotate-secret")
    assert EndpointSecret.objects.count() == 1


@pytest.fixture
def failed(plain):
    """An endpoint with three deliveries that failed for good."""
    target = EndpointFactory.create()
    publish_events(3)
    Delivery.objects.all().fail(error="over")
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
    monkeypatch.setattr(resending, "REPLAYED_AT_ONCE", 2)
    text = page(admin_client, f"{change(failed)}?hours=24")
    assert f"webhooks_resend --endpoint {failed.public_id} --since" in text
    assert 'name="since"' not in text
    with nothing_changes():
        text = operate(admin_client, failed, "replay-failed", **ANY)
    assert "more than 2 at once" in text


@pytest.mark.parametrize("hours", ["", "2", "-1", "x", "%00"])
def test_only_the_times_on_offer_are_counted(admin_client, failed, hours):
    assert "failed since" not in page(admin_client, f"{change(failed)}?hours={hours}")
