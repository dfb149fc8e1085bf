"""The page that resends all that failed, of all endpoints: the question, and what it does."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from tests.webhooks_core.admin.looking import looker, nothing_changes, page, queries_of
from tests.webhooks_core.factories import DeliveryFactory, EndpointFactory, EventFactory
from webhooks_core.admin import resending
from webhooks_core.models import Delivery, Endpoint, EndpointChange
from webhooks_core.pages import history

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain")]
PATH = "/admin/webhooks_core/delivery/resend-failed/"
FAILED, DELIVERED = Delivery.Status.FAILED, Delivery.Status.DELIVERED


def failed(endpoint: Endpoint, **fields) -> Delivery:
    over = {"status": FAILED, "next_attempt_at": None, "last_error": "HTTP 500"}
    return DeliveryFactory.create(endpoint=endpoint, replay_number=0, **over | fields)


@pytest.fixture
def three() -> list[Endpoint]:
    """Endpoints of two owners; the last one is disabled, and one event arrived at the first."""
    rows = [
        EndpointFactory.create(),
        EndpointFactory.create(owner="bob"),
        EndpointFactory.create(owner="bob"),
    ]
    for row in rows:
        failed(row)
        failed(row)
        failed(row, created_at=timezone.now() - timedelta(days=3))
    Endpoint.objects.filter(pk=rows[2].pk).update(status=Endpoint.Status.DISABLED)
    event = EventFactory.create(public_id="evt_arrived")
    failed(rows[0], event=event)
    DeliveryFactory.create(
        endpoint=rows[0],
        event=event,
        status=DELIVERED,
        next_attempt_at=None,
        delivered_at=timezone.now(),
    )
    return rows


def words(text: str) -> str:
    return " ".join(re.sub("<[^>]+>", " ", text).split())


def test_the_question_says_how_much_arrived_already_and_what_is_left_out(
    admin_client, three
):
    assert 'name="since"' not in page(admin_client, PATH)
    text = page(admin_client, f"{PATH}?hours=24")
    said = words(text)
    assert "6 deliveries failed since" in said
    assert "1 more failed at first and arrived already" in said
    assert "2 of them are for endpoints that receive nothing now" in said
    assert "Resend 4" in said
    (since,) = re.findall(r'name="since" value="([^"]+)"', text)
    answer = admin_client.post(PATH, {"since": unescape(since)}, follow=True)
    assert "Queued 4 again" in words(answer.content.decode())
    assert "Left out: what failed to 1 that receive nothing" in answer.content.decode()
    queued = Delivery.objects.filter(trigger="replay")
    assert sorted(queued.values_list("endpoint", flat=True)) == sorted(
        2 * [three[0].pk, three[1].pk]
    )
    recorded = EndpointChange.objects.filter(action=EndpointChange.Action.RESENT)
    assert set(recorded.values_list("endpoint", flat=True)) == {
        three[0].pk,
        three[1].pk,
    }
    [line, _] = history.lines(recorded)
    assert (line.actor, line.words) == ("An operator", "resent what had failed")
    assert LogEntry.objects.count() == 2
    assert "2 deliveries failed" in words(page(admin_client, f"{PATH}?hours=24"))


def test_too_much_is_left_to_the_command(admin_client, three, monkeypatch):
    monkeypatch.setattr(resending, "REPLAYED_AT_ONCE", 5)
    text = page(admin_client, f"{PATH}?hours=24")
    assert "Resend them by endpoint" in text
    assert 'name="since"' not in text
    with nothing_changes():
        answer = admin_client.post(PATH, {"since": "2020-01-01T00:00Z"}, follow=True)
    assert "more than 5 at once" in answer.content.decode()


def test_without_a_time_nothing_is_sent(admin_client, three):
    for since in ("", "yesterday", "2026-13-45T00:00Z", "2026-01-01T00:00"):
        with nothing_changes():
            answer = admin_client.post(PATH, {"since": since}, follow=True)
        assert "Count first" in answer.content.decode()


def test_who_may_only_look_sees_the_numbers_and_sends_nothing(client, three):
    looker(client, ["view_delivery"])
    text = page(client, f"{PATH}?hours=24")
    assert "6 deliveries failed" in words(text)
    assert 'name="since"' not in text
    with nothing_changes():
        answer = client.post(PATH, {"since": "2020-01-01T00:00Z"})
    assert answer.status_code == 403


def test_the_question_asks_a_constant_number_of_queries(admin_client, three):
    few = queries_of(admin_client, f"{PATH}?hours=24")
    for _ in range(20):
        failed(EndpointFactory.create(owner="carol"))
    assert len(queries_of(admin_client, f"{PATH}?hours=24")) == len(few)


def test_the_list_leads_to_it(admin_client):
    assert PATH in page(admin_client, "/admin/webhooks_core/delivery/")
