"""The sentence about an endpoint, on what the engine has written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core import endpoints
from webhooks_core.models import Delivery, Endpoint, EndpointChange, SkippedEvent
from webhooks_core.owners import endpoint_state
from webhooks_core.owners.endpoint_state import (
    Health,
    describe,
    describe_all,
    told,
)
from webhooks_core.owners.remedies import remedy

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def noon():
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


def state_of(endpoint: Endpoint) -> endpoint_state.EndpointState:
    endpoint.refresh_from_db()
    return describe(endpoint)


def test_a_new_endpoint_has_sent_nothing(noon):
    state = state_of(EndpointFactory.create())
    assert (state.state, state.sentence) == (
        Health.HEALTHY,
        "Nothing was sent yet. 0 wait.",
    )
    assert (state.since, state.remedy, state.error) == (None, "", "")


def test_failures_are_told_with_their_time_number_error_and_answer(use_profile):
    use_profile(disable_after=None)
    with receiver(500, 500, 404, 204) as server:
        server.answer = b'{"error":\n "no\x00 disk"}'
        target = EndpointFactory.create(url=server.url, max_in_flight=1)
        publish_event()
        assert dispatch() == 1
        state = state_of(target)
        assert state.since
        since = told(state.since, timezone.now())
        assert state.sentence == (
            f'Fails since {since}: 1 attempt, HTTP 500 `{{"error": "no disk"}}`.'
            " Last success: never. 1 waits."
        )
        assert "the log of your server" in state.remedy
        assert describe(target, with_response=False).error == "HTTP 500"
        server.answer = b"x"
        for words in (
            "2 attempts, all HTTP 500 `x`.",
            "3 attempts, the last one HTTP 404 `x`.",
        ):
            Delivery.objects.all().fail(error="over")
            publish_event()
            assert dispatch() == 1
            assert words in state_of(target).sentence
            assert target.failing_since == state.since
        Delivery.objects.all().fail(error="over")
        publish_event()
        assert dispatch() == 1
    state = state_of(target)
    assert state.last_success_at
    success = told(state.last_success_at, timezone.now())
    assert state.sentence == f"Delivers. Last success: {success}. 0 wait."
    assert (state.attempts, state.error, target.last_error) == (0, "", "HTTP 404")


def test_an_endpoint_that_the_engine_disables_says_since_when(use_profile):
    use_profile(disable_after=1)
    with receiver(500) as server:
        target = EndpointFactory.create(url=server.url)
        publish_event()
        assert dispatch() == 1
    first, _ = publish_events(2)
    publish_event(event_type="thing.lost")  # it would not receive that one
    state = state_of(target)
    assert state.since
    assert (state.state, state.skipped) == (Health.DISABLED, 2)
    since, now = target.failing_since, timezone.now()
    assert state.sentence.startswith(f"Disabled since {told(state.since, now)}: ")
    skipped = f"2 events since {told(first.created_at, now)} were not sent."
    assert state.sentence.endswith(skipped)
    [change] = EndpointChange.objects.filter(action="disabled")
    assert change.actor_kind == "engine"
    endpoints.enable(target)
    assert state_of(target).since == since  # it still fails
    assert target.disabled_at is None


def test_what_an_inactive_endpoint_skips_is_kept_with_the_reason(noon):
    target = EndpointFactory.create()
    endpoints.update(target, active=False)
    publish_event()
    assert SkippedEvent.objects.get().reason == "inactive"
    noon.move_to(NOON + timedelta(days=1))
    state = state_of(target)
    assert state.sentence == (
        "Switched off since 2026-11-21 12:00:00 UTC: nothing is sent. 0 wait."
        " 1 event since 2026-11-21 12:00:00 UTC was not sent."
    )
    assert state.remedy == "Switch it on, and replay what was missed."
    assert not Delivery.objects.exists()


def test_all_of_a_page_are_described_by_one_query(monkeypatch):
    monkeypatch.setattr(endpoint_state, "MAX_COUNTED", 2)
    targets = [EndpointFactory.create(owner=f"owner {n}") for n in range(5)]
    for _ in range(3):
        publish_event(owner="owner 0")
    with CaptureQueriesContext(connection) as queries:
        states = describe_all(targets)
    assert len(queries) == 1
    assert "More than 2 wait." in states[targets[0].pk].sentence
    endpoints.delete(targets[1])
    assert state_of(targets[1]).sentence.startswith("Deleted since ")


@pytest.mark.parametrize(
    ("outcome", "status", "words"),
    [
        ("ok", 204, ""),
        ("http", 401, "signature"),
        ("http", 418, "refused the request"),
        ("http", 500, "log of your server"),
        ("http", 301, "Redirects are not followed"),
        ("timeout", None, "after 5 s"),
        ("dns", None, "DNS"),
        ("tls", None, "certificate"),
    ],
)
def test_each_class_of_error_has_a_remedy(outcome, status, words):
    text = remedy(outcome, status, timeout_s=5)
    assert words in text
    assert bool(words) == bool(text)
