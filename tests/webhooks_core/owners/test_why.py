"""Why an event did or did not reach an endpoint."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core import endpoints
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.owners import why
from webhooks_core.owners.why import explain

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def told(endpoint: Endpoint, event: Event) -> tuple[str, str]:
    endpoint.refresh_from_db()
    reason = explain(endpoint, event.public_id)
    return reason.answer, reason.sentence


def test_an_event_that_nobody_asked_for():
    early = publish_event()
    target = EndpointFactory.create()
    assert told(target, early)[1] == "It was published before the endpoint existed."
    other = publish_event(event_type="thing.lost")
    assert told(target, other) == (
        "not_subscribed",
        "The endpoint does not receive thing.lost.",
    )
    endpoints.update(target, event_types=["thing.lost"])
    assert "when it was published" in told(target, other)[1]


def test_an_event_that_was_skipped():
    target = EndpointFactory.create()
    endpoints.update(target, active=False)
    event = publish_event()
    endpoints.update(target, active=True)
    assert told(target, event) == (
        "skipped",
        "The endpoint was inactive when it was published: skipped.",
    )


def test_events_of_others_and_what_is_no_id_are_unknown_and_old_ones_expired():
    target = EndpointFactory.create()
    EndpointFactory.create(owner="bob")
    theirs = publish_event(owner="bob")
    for event_id in (theirs.public_id, "evt_x", "", "\x00"):
        assert explain(target, event_id).answer == "unknown"
    with time_machine.travel(timezone.now() + timedelta(days=31)):
        reason = explain(target, theirs.public_id)
    assert (reason.answer, reason.sentence) == (
        "expired",
        "Events are kept for 30 days: it was removed.",
    )


def test_a_waiting_delivery_says_for_what_it_waits():
    target = EndpointFactory.create()
    event = publish_events(3)[-1]
    rows = Delivery.objects.filter(event=event)
    now = timezone.now()
    reason = explain(target, event.public_id)
    assert (reason.answer, reason.position) == ("waiting", 2)
    assert reason.sentence == "Waits: its turn comes next, 2 before this one."
    rows.update(claimed_by=7)
    assert told(target, event)[1] == "It is being sent."
    assert explain(target, event.public_id).position == 0
    rows.update(claimed_by=None)
    for changes, words in (
        ({"hanging_since": now}, "the endpoint hangs, one request at a time, 2 before"),
        ({"paused_at": now}, "Waits: the endpoint is paused."),
        ({"status": 2}, "Waits: the endpoint is disabled."),
    ):
        Endpoint.objects.update(**changes)
        assert words in told(target, event)[1]


def test_a_retry_says_when_it_comes_and_what_failed():
    target = EndpointFactory.create()
    event = publish_event()
    with time_machine.travel("2026-11-21T12:00:00Z", tick=False):
        at = timezone.now() + timedelta(minutes=5)
        Delivery.objects.update(next_attempt_at=at, attempts=2, last_error="HTTP 500")
        reason = explain(target, event.public_id)
    assert reason.sentence == "Waits until 12:05:00 UTC: 2 attempts failed, HTTP 500."


def test_the_best_of_several_deliveries_is_told():
    target = EndpointFactory.create()
    event = publish_event()
    Delivery.objects.update(attempts=1, last_error="HTTP 500")
    Delivery.objects.all().fail(error="HTTP 500")
    assert told(target, event) == ("failed", "Failed after 1 attempt: HTTP 500.")
    failed = Delivery.objects.get()
    Delivery.objects.create(
        public_id="dlv_2", event=event, endpoint=target, replay_number=1
    )
    assert explain(target, event.public_id).answer == why.Answer.WAITING
    now = timezone.now()
    Delivery.objects.filter(pk=failed.pk).update(status=1, delivered_at=now)
    reason = explain(target, event.public_id)
    assert (reason.answer, reason.delivery) == ("delivered", failed)
