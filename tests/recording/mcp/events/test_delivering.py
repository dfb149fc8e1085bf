"""Delivery by the engine: watermarks, retries, the receiver's word, and access at the last moment."""

from __future__ import annotations

from datetime import timedelta

import orjson
import pytest
from django.utils import timezone

from recording.accounts import personal_tokens
from recording.mcp.events import delivering
from recording.mcp.events.arguments import MAX_BYTES
from recording.mcp.events.cursors import Position
from recording.models import EventSubscription, PersonalToken
from recording.webhooks import EVENTS_PROFILE
from tests.recording.mcp.conftest import store
from tests.recording.mcp.events.callback import callback, make_secret
from tests.recording.mcp.events.conftest import subscribe
from tests.webhooks_core.engine import dispatch
from webhooks_core import profiles
from webhooks_core.models import Attempt, Delivery, Endpoint, Event

pytestmark = pytest.mark.django_db(transaction=True)

TRANSCRIPT = {"include_transcript": True}


def position_of(body, events):
    return Position.read(body["cursor"], account=events.api.user.pk).event


def retry():
    """Let what waits for its next attempt be due."""
    Delivery.objects.pending().update(next_attempt_at=timezone.now())
    for endpoint in Endpoint.objects.all():
        endpoint.queue.next_due_at = timezone.now()
        endpoint.queue.save()
    return dispatch()


@pytest.mark.spec(
    "mcp-events",
    "each retry has a fresh timestamp and signature",
    "retries are bounded: attempts and time",
)
def test_four_attempts_in_about_twelve_minutes(events):
    policy = profiles.get(EVENTS_PROFILE).retry
    assert policy.max_attempts == 4
    assert sum(policy.delays) == 12 * 60
    with callback(503) as server:
        subscribe(events, server)
        store(events.api)
        dispatch()
        while retry():
            pass
    assert len(server.events) == 4
    assert len({body["eventId"] for body in server.events}) == 1
    [delivery] = Delivery.objects.all()
    assert (delivery.status, delivery.attempts) == (Delivery.Status.FAILED, 4)


@pytest.mark.spec(
    "mcp-events", "410 and 413 are not retried, and do not end the subscription"
)
@pytest.mark.parametrize("status", [410, 413])
def test_the_receivers_word_ends_one_delivery(events, status):
    with callback(status, 204) as server:
        subscribe(events, server)
        server.statuses = [status, 204]
        store(events.api)
        dispatch()
        [delivery] = Delivery.objects.all()
        assert (delivery.status, delivery.attempts) == (Delivery.Status.FAILED, 1)
        store(events.api)
        dispatch()
    assert len(server.events) == 2
    assert Delivery.objects.filter(status=Delivery.Status.DELIVERED).count() == 1


@pytest.mark.spec(
    "mcp-events", "the cursor is a watermark: nothing before it is unacknowledged"
)
def test_the_cursor_passes_only_what_has_arrived(events):
    with callback(204) as server:
        subscribe(events, server)
        server.statuses = [500, 204]
        store(events.api)
        dispatch()
        store(events.api)
        dispatch()
        first, second = Event.objects.order_by("pk").values_list("pk", flat=True)
        failed, delivered = server.events
        assert position_of(failed, events) == first
        # The first one waits for its next attempt.
        assert position_of(delivered, events) == first - 1
        polled = events.poll(delivered["cursor"])["events"]
        assert [each["eventId"] for each in polled] == [
            failed["eventId"],
            delivered["eventId"],
        ]
        refreshed = subscribe(events, server)
        assert position_of(refreshed, events) == first - 1
        retry()
        assert position_of(subscribe(events, server), events) == second
    assert position_of(server.events[-1], events) == first


@pytest.mark.spec("mcp-events", "bodies have at most 256 KiB")
def test_a_body_has_at_most_256_kib(events):
    text = {"text": "€" * 500_000, "truncated": False, "language": "en"}
    with callback() as server:
        subscribe(events, server, arguments=TRANSCRIPT)
        subscribe(events, server)
        store(events.api, transcript=text)
        dispatch()
    sizes = sorted(len(request.body) for request in server.requests[1:])
    assert sizes[0] < 2048
    assert 0.9 * MAX_BYTES < sizes[1] <= MAX_BYTES


@pytest.mark.spec("mcp-events", "access is verified again at delivery")
@pytest.mark.parametrize("ending", ["revoked", "expired", "account"])
def test_what_was_revoked_meanwhile_gets_no_retry(events, ending):
    with callback(500, 204) as server:
        subscribe(events, server)
        server.statuses = [500, 204]
        store(events.api)
        dispatch()
        assert len(server.events) == 1
        if ending == "revoked":
            PersonalToken.objects.revoke(timezone.now())
        elif ending == "expired":
            PersonalToken.objects.update(expires_at=timezone.now())
        else:
            type(events.api.user).objects.update(is_active=False)
        retry()
    assert len(server.events) == 1
    [delivery] = Delivery.objects.all()
    assert delivery.status == Delivery.Status.FAILED
    assert delivery.last_error == delivering.NOT_CONNECTED
    assert delivery.attempts == Attempt.objects.count() == 1


def test_a_secret_that_changes_in_mid_retry_signs_the_next_attempt(events):
    with callback(204) as server:
        subscribe(events, server)
        server.statuses = [500, 204]
        store(events.api)
        dispatch()
        server.secrets = [make_secret()]
        server.secrets.insert(0, make_secret())
        delivery = {"mode": "webhook", "url": server.url, "secret": server.secrets[-1]}
        subscribe(events, server, delivery=delivery)
        retry()
    assert len(server.events) == 2
    assert server.events[0]["eventId"] == server.events[1]["eventId"]


def test_a_clock_that_jumps_makes_no_stale_signature(events, monkeypatch):
    with callback(204) as server:
        subscribe(events, server)
        server.statuses = [500, 204]
        store(events.api)
        dispatch()
        Event.objects.update(created_at=timezone.now() - timedelta(days=1))
        retry()
    assert len(server.events) == 2  # the package refuses what is older than 5 minutes


def test_a_hundred_subscriptions_to_one_event_cost_as_many_rows(
    events, django_assert_max_num_queries
):
    with callback() as server:
        subscribe(events, server)
    original, endpoint = EventSubscription.objects.get(), Endpoint.objects.get()
    count = 100
    copies = [
        Endpoint(
            public_id=f"mcpe_{number}",
            profile=EVENTS_PROFILE,
            owner=endpoint.owner,
            url=endpoint.url,
        )
        for number in range(count)
    ]
    Endpoint.objects.bulk_create(copies)
    EventSubscription.objects.bulk_create(
        EventSubscription(
            endpoint=copy,
            account_id=original.account_id,
            client=original.client,
            subscription_id=f"sub_{copy.pk}",
            name=original.name,
            arguments={"title_contains": "Weekly"} if number % 2 else {},
        )
        for number, copy in enumerate(copies)
    )
    # Statements for all of them, and none for each.
    with django_assert_max_num_queries(39):
        store(events.api)
    assert Delivery.objects.count() == count + 1


def test_many_subscriptions_are_prepared_with_few_statements(
    events, django_assert_max_num_queries
):
    with callback() as server:
        for number in range(7):
            subscribe(events, server, arguments={"min_duration_ms": number})
        store(events.api)
        rows = Delivery.objects.select_related("event").order_by("pk")
        sendings = [
            profiles.Sending(
                row.pk,
                row.endpoint_id,
                row.event_id,
                row.event.type,
                bytes(row.event.body),
            )
            for row in rows
        ]
        assert len(sendings) == 7
        with django_assert_max_num_queries(6):
            prepared = delivering.prepare(sendings)
        bodies = [
            orjson.loads(each.body)
            for each in prepared.values()
            if isinstance(each, profiles.Prepared)
        ]
        assert len(bodies) == 7
        assert {body["eventId"] for body in bodies} == {Event.objects.get().public_id}
        dispatch()
    assert len(server.events) == 7


def test_without_a_subscription_nothing_is_delivered(events):
    store(events.api)
    assert not Delivery.objects.exists()


def test_another_token_of_the_account_does_not_keep_a_subscription(events):
    with callback() as server:
        subscribe(events, server)
        other = personal_tokens.create(user=events.api.user, days=1)
        own = PersonalToken.objects.exclude(pk=other.token.pk)
        own.update(revoked_at=timezone.now())
        store(events.api)
        dispatch()
    assert not server.events
