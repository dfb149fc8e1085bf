"""Delivery by the engine: retries, the receiver's word, and access at the last moment."""

import jsonschema
import pytest
from django.db import connection
from django.utils import timezone

from recording.accounts import personal_tokens
from recording.accounts.erasure import erase
from recording.accounts.owners import locked_account
from recording.mcp.events import profile, subscriptions
from recording.models import EventSubscription, PersonalToken
from recording.webhooks import EVENTS_PROFILE
from tests.recording.mcp.conftest import store
from tests.recording.mcp.events.conftest import EVENT, subscribe
from tests.threads import started
from tests.webhooks_core.engine import dispatch
from webhooks_core import profiles
from webhooks_core.models import Attempt, Delivery, Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


def retry():
    """Let what waits for its next attempt be due."""
    Delivery.objects.pending().update(next_attempt_at=timezone.now())
    for endpoint in Endpoint.objects.all():
        endpoint.queue.next_due_at = timezone.now()
        endpoint.queue.save()
    return dispatch()


def test_an_event_reaches_the_receiver_signed(events, server):
    [item] = events.do("list")["events"]
    result = subscribe(events, server)
    audio_id = store(events.api)
    assert dispatch() == 1
    [body] = server.events
    assert [*body] == ["eventId", "name", "timestamp", "data", "cursor"]
    assert (body["name"], body["data"]["audio_id"]) == (EVENT, audio_id)
    assert (body["cursor"], "transcript" in body["data"]) == (None, False)
    jsonschema.validate(body["data"], item["payloadSchema"])
    headers = server.requests[-1].headers
    assert headers["webhook-id"] == body["eventId"]
    assert headers["X-MCP-Subscription-Id"] == result["id"]
    assert headers["Content-Type"] == "application/json"
    names = {name.lower() for name in headers}
    assert "x-mcp_events-signature" not in names


def test_a_body_has_at_most_256_kib(events, server, subscribed):
    summary = {"label": "Summary", "content": "€" * 100_000, "format": "markdown"}
    store(events.api, summaries=[summary])
    dispatch()
    [body] = server.events
    assert body["data"]["omitted"] == ["summaries"]
    assert "title" in body["data"]
    assert len(server.requests[-1].body) <= profile.MAX_BYTES


def test_four_attempts_in_about_twelve_minutes(events, server, subscribed):
    policy = profiles.get(EVENTS_PROFILE).retry
    assert policy.max_attempts == 4
    assert sum(policy.delays) == 12 * 60
    server.statuses = [503]
    store(events.api)
    dispatch()
    while retry():
        pass
    assert len(server.events) == 4
    assert len({body["eventId"] for body in server.events}) == 1
    [delivery] = Delivery.objects.all()
    assert (delivery.status, delivery.attempts) == (Delivery.Status.FAILED, 4)


@pytest.mark.parametrize("status", [410, 413])
def test_the_receivers_word_ends_one_delivery(events, server, subscribed, status):
    server.statuses = [status, 204]
    store(events.api)
    dispatch()
    [delivery] = Delivery.objects.all()
    assert (delivery.status, delivery.attempts) == (Delivery.Status.FAILED, 1)
    store(events.api)
    dispatch()
    assert len(server.events) == 2
    assert Delivery.objects.filter(status=Delivery.Status.DELIVERED).count() == 1


def revoke(account):
    PersonalToken.objects.revoke(timezone.now())


def expire_token(account):
    PersonalToken.objects.update(expires_at=timezone.now())


def deactivate(account):
    type(account).objects.filter(pk=account.pk).update(is_active=False)


def expire(account):
    EventSubscription.objects.update(expires_at=timezone.now())


ENDINGS = pytest.mark.parametrize(
    ("ending", "error"),
    [
        (revoke, profile.NOT_CONNECTED),
        (expire_token, profile.NOT_CONNECTED),
        (deactivate, profile.NOT_CONNECTED),
        (expire, profile.ENDED),
    ],
)


@ENDINGS
def test_what_has_ended_meanwhile_gets_no_retry(
    events, server, subscribed, ending, error
):
    server.statuses = [500, 204]
    store(events.api)
    dispatch()
    ending(events.api.user)
    retry()
    assert len(server.events) == 1
    [delivery] = Delivery.objects.all()
    assert (delivery.status, delivery.last_error) == (Delivery.Status.FAILED, error)
    assert delivery.attempts == Attempt.objects.count() == 1


@ENDINGS
def test_what_has_ended_is_removed(events, subscribed, ending, error):
    subscriptions.end_over()
    assert EventSubscription.objects.exists()
    ending(events.api.user)
    subscriptions.end_over()
    assert not EventSubscription.objects.exists()
    endpoint = Endpoint.objects.get()
    assert (endpoint.slot, endpoint.deleted_at is not None) == (None, True)


def test_a_subscription_that_has_lapsed_begins_again(events, server):
    first = subscribe(events, server)
    EventSubscription.objects.update(expires_at=timezone.now())
    again = subscribe(events, server)
    assert len(server.asked) == 2
    store(events.api)
    dispatch()
    assert again["id"] == first["id"]
    assert len(server.events) == 1


def test_a_refresh_in_that_moment_keeps_a_subscription(events, subscribed, monkeypatch):
    row = EventSubscription.objects.get()
    EventSubscription.objects.update(expires_at=timezone.now())

    def refresh_first(account):
        row.save()
        return locked_account(account)

    monkeypatch.setattr(subscriptions, "locked_account", refresh_first)
    subscriptions.end_over()
    assert EventSubscription.objects.get().expires_at > timezone.now()


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer")
def test_an_end_waits_for_a_refresh_that_is_not_committed_yet(events, subscribed):
    row = EventSubscription.objects.get()
    EventSubscription.objects.update(expires_at=timezone.now())
    with locked_account(events.api.user.pk):
        upkeep = started(subscriptions.end_over)
        row.save()
    upkeep.result()
    assert EventSubscription.objects.exists()


def test_another_token_of_the_account_does_not_keep_a_subscription(
    events, server, subscribed
):
    other = personal_tokens.create(user=events.api.user, days=1)
    own = PersonalToken.objects.exclude(pk=other.token.pk)
    own.update(revoked_at=timezone.now())
    store(events.api)
    dispatch()
    assert not server.events


def test_a_deleted_account_leaves_nothing(events, server, subscribed):
    store(events.api)
    erase(events.api.user)
    dispatch()
    assert not server.events
    assert not EventSubscription.objects.exists()


def test_a_hundred_subscriptions_cost_no_statement_each(
    events, subscribed, django_assert_max_num_queries
):
    original, endpoint = EventSubscription.objects.get(), Endpoint.objects.get()
    same = {"profile": EVENTS_PROFILE, "owner": endpoint.owner, "url": endpoint.url}
    copies = Endpoint.objects.bulk_create(
        Endpoint(public_id=f"mcpe_{number}", **same) for number in range(100)
    )
    EventSubscription.objects.bulk_create(
        EventSubscription(
            endpoint=copy,
            account_id=original.account_id,
            client=original.client,
            subscription_id=f"sub_{copy.pk}",
            expires_at=original.expires_at,
        )
        for copy in copies
    )
    with django_assert_max_num_queries(39):
        store(events.api)
    rows = Delivery.objects.select_related("event").order_by("pk")
    sendings = [
        profiles.Sending(
            row.pk, row.endpoint_id, row.event_id, EVENT, bytes(row.event.body)
        )
        for row in rows
    ]
    with django_assert_max_num_queries(6):
        assert len(profile.prepare(sendings)) == 101
