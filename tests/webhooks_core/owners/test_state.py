"""The state of an endpoint in words, on what the engine has written."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core import endpoints
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners import state
from webhooks_core.owners.remedies import remedy
from webhooks_core.owners.state import Health

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def state_of(endpoint: Endpoint) -> state.EndpointState:
    endpoint.refresh_from_db()
    return state.describe(endpoint)


def test_a_new_endpoint_has_sent_nothing():
    assert state_of(EndpointFactory.create()).sentence == (
        "Healthy: Nothing was sent yet."
    )


def test_failures_are_told_with_their_time_number_error_and_answer(use_profile):
    use_profile(disable_after=None)
    with receiver(500, 500, 404, 204) as server:
        server.answer = b'{"error":\n "no\x00 disk"}'
        target = EndpointFactory.create(url=server.url, max_in_flight=1)
        for words in (
            "1 failed attempt (HTTP 500). No success yet. 1 delivery is waiting.",
            "2 failed attempts (all: HTTP 500). No success yet. 2 deliveries are waiting.",
            "3 failed attempts (last: HTTP 404). No success yet. 3 deliveries are waiting.",
        ):
            publish_event()
            assert dispatch() == 1
            shown = state_of(target)
            assert (shown.state, shown.reason) == (Health.FAILING, words)
            assert shown.answer == '{"error": "no disk"}'
        assert "nothing at this path" in shown.remedy
        assert state.describe(target, for_owner=True).answer
        Endpoint.objects.update(trusted=True)
        target.refresh_from_db()
        assert state.describe(target, for_owner=True).answer == ""
        Endpoint.objects.update(failing_since=timezone.now() - timedelta(hours=12))
        assert state_of(target).sentence.startswith("Failing for 12 h: 3 failed")
        publish_event()
        assert dispatch() == 1
    shown = state_of(target)
    assert (shown.state, shown.answer, shown.remedy) == (Health.HEALTHY, "", "")
    assert shown.reason.startswith("Last success ")


def test_an_endpoint_that_the_engine_disables_says_since_when_and_what_it_missed(
    use_profile,
):
    use_profile(disable_after=1)
    with receiver(500) as server:
        target = EndpointFactory.create(url=server.url)
        publish_event()
        assert dispatch() == 1
    publish_events(2)
    shown = state_of(target)
    assert (shown.state, shown.since) == (Health.DISABLED, target.disabled_at)
    assert shown.reason.startswith("nothing is sent. 1 failed attempt (HTTP 500).")
    assert shown.remedy.endswith(
        "Nothing is sent until you enable the endpoint or change its URL."
    )
    assert state.outage(target) == "2 events were not sent since then."
    enabled = endpoints.update(target, status=Endpoint.Status.ACTIVE)
    text = "2 events were not sent while the endpoint was disabled."
    assert state.outage(enabled) == text
    assert state_of(target).state == Health.FAILING  # until a success


@pytest.mark.parametrize(
    ("fields", "health"),
    [
        ({"active": False}, Health.PAUSED),
        ({"status": 2, "active": False}, Health.DISABLED),
        ({"deleted_at": timezone.now(), "status": 2}, Health.DELETED),
        ({"failing_since": timezone.now()}, Health.FAILING),
        ({}, Health.HEALTHY),
    ],
)
def test_each_state_is_found_by_a_query_too(fields, health):
    target = EndpointFactory.create()
    Endpoint.objects.update(**fields)
    assert state_of(target).state == health
    for each in Health:
        assert Endpoint.objects.filter(each.condition).exists() == (each is health)


def test_all_of_a_page_are_described_by_one_query(
    monkeypatch, django_assert_num_queries
):
    monkeypatch.setattr(state, "MAX_COUNTED", 2)
    targets = [EndpointFactory.create(owner=f"owner {n}") for n in range(5)]
    for _ in range(3):
        publish_event(owner="owner 0")
    with django_assert_num_queries(1):
        states = state.describe_all(targets)
    assert "More than 2 deliveries are waiting." in states[targets[0].pk].sentence
    assert Delivery.objects.count() == 3


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


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.24, "240 ms"), (12, "12 s"), (119, "119 s"), (300, "5 min"), (7200, "2 h")],
)
def test_durations_have_one_unit(seconds, words):
    assert state.in_words(timedelta(seconds=seconds)) == words
