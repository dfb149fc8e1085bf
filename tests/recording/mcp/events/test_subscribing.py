"""`events/subscribe`, its refresh, and `events/unsubscribe`."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from recording.accounts import personal_tokens
from recording.models import EventSubscription
from recording.webhooks import EVENTS_PROFILE
from tests.recording.mcp.conftest import store
from tests.recording.mcp.events.callback import callback, make_secret
from tests.recording.mcp.events.conftest import EVENT, EventsClient, refused, subscribe
from tests.webhooks_core.engine import dispatch
from webhooks_core import profiles
from webhooks_core.models import Delivery, Endpoint, EndpointSecret

pytestmark = pytest.mark.django_db(transaction=True)

HOUR_MS = 3_600_000


def lifetime(result):
    return datetime.fromisoformat(result["refreshBefore"]) - timezone.now()


@pytest.mark.spec(
    "mcp-events",
    "Standard Webhooks headers and X-MCP-Subscription-Id",
    "webhook-id is the eventId",
    "the body is an EventOccurrence with a cursor",
)
def test_an_event_reaches_the_receiver_signed(events):
    with callback() as server:
        result = subscribe(events, server, arguments={"label": "Summary"})
        audio_id = store(events.api)
        store(events.api, summaries=[])
        assert dispatch() == 1
    [body] = server.events
    request = server.requests[-1]
    assert [*body] == ["eventId", "name", "timestamp", "data", "cursor"]
    assert (body["name"], body["data"]["audio_id"]) == (EVENT, audio_id)
    assert request.headers["webhook-id"] == body["eventId"]
    assert request.headers["X-MCP-Subscription-Id"] == result["id"]
    assert request.headers["Content-Type"] == "application/json"
    names = {name.lower() for name in request.headers}
    assert not any(name.endswith(("-event", "_events-signature")) for name in names)
    assert "x-mcp_events-signature" not in names
    [polled] = events.poll(result["cursor"], arguments={"label": "Summary"})["events"]
    assert polled == {key: body[key] for key in body if key != "cursor"}
    assert events.poll(body["cursor"])["events"][0]["eventId"] != body["eventId"]


@pytest.mark.spec(
    "mcp-events",
    "a subscribe with the same key refreshes, and asks the receiver no more",
    "one verification covers the principal's subscriptions to the url",
)
def test_a_refresh_keeps_the_subscription(events):
    with callback() as server:
        first = subscribe(events, server)
        again = subscribe(events, server)
        other = subscribe(events, server, arguments={"label": "x"})
        assert len(server.asked) == 1
    assert again["id"] == first["id"] != other["id"]
    status = {"active": True, "lastDeliveryAt": None, "lastError": None}
    assert again["deliveryStatus"] == status
    assert "deliveryStatus" not in first
    assert EventSubscription.objects.count() == 2


@pytest.mark.spec(
    "mcp-events",
    "the server grants at most what was suggested, or its least; null only on request",
)
def test_lifetimes(events, settings):
    day, week = timedelta(days=1), timedelta(days=7)
    second = timedelta(seconds=30)
    with callback() as server:

        def granted(**params):
            return lifetime(subscribe(events, server, **params))

        assert day - second < granted() <= day
        hour = timedelta(hours=1)
        assert hour - second < granted(ttlMs=HOUR_MS) <= hour
        for least in (1, 0, -5, -(2**63)):
            assert timedelta(minutes=4) < granted(ttlMs=least) <= timedelta(minutes=5)
        for most in (10**15, 2**64 - 1, None):
            assert week - second < granted(ttlMs=most) <= week
        settings.MCP_EVENTS_NO_EXPIRY = True
        assert subscribe(events, server, ttlMs=None)["refreshBefore"] is None
        assert granted() <= day
        assert refused(events, server, ttlMs="1")["code"] == -32602


def test_a_subscription_whose_time_is_over_gets_nothing(events):
    with callback() as server:
        first = subscribe(events, server)
        store(events.api)  # before its end, sent after it
        EventSubscription.objects.update(expires_at=timezone.now())
        store(events.api)
        dispatch()
        assert not server.events
        [delivery] = Delivery.objects.all()
        assert (delivery.status, delivery.attempts) == (Delivery.Status.FAILED, 0)
        assert "ended" in delivery.last_error
        again = subscribe(events, server, cursor=first["cursor"])
        assert len(server.asked) == 2
        dispatch()
    assert again["id"] == first["id"]
    assert len(server.events) == 2


@pytest.mark.spec(
    "mcp-events",
    "a cursor replays to a new subscription, and is a no-op for a live one",
)
def test_a_cursor_replays_once(events):
    cursor = events.poll()["cursor"]
    before = store(events.api)
    with callback() as server:
        subscribe(events, server, cursor=cursor)
        after = store(events.api)
        subscribe(events, server, cursor=cursor)
        dispatch()
    assert sorted(each["data"]["audio_id"] for each in server.events) == [before, after]


def test_a_replay_has_a_ceiling_and_says_so(events, monkeypatch):
    monkeypatch.setattr("recording.mcp.events.occurrences.MAX_SCANNED", 2)
    cursor = events.poll()["cursor"]
    stored = [store(events.api) for _ in range(3)]
    with callback() as server:
        result = subscribe(events, server, cursor=cursor)
        dispatch()
    assert result["truncated"] is True
    assert sorted(each["data"]["audio_id"] for each in server.events) == stored[1:]


@pytest.mark.spec("mcp-events", "a refresh replaces the secret; both sign for a grace")
def test_a_new_secret_signs_beside_the_old_one(events):
    with callback() as server:
        subscribe(events, server)
        old, new = server.secrets[0], make_secret()
        server.secrets.append(new)
        subscribe(events, server)
        store(events.api)
        dispatch()
        assert len(server.requests[-1].headers["webhook-signature"].split()) == 2
        for secret in (old, new):
            server.secrets = [secret]
            assert server._verified(server.requests[-1])
        server.secrets = [new]
        subscribe(events, server)  # the same again rotates nothing
        assert EndpointSecret.objects.count() == 2
        EndpointSecret.objects.exclude(expires_at=None).update(
            expires_at=timezone.now()
        )
        store(events.api)
        dispatch()
    assert len(server.requests[-1].headers["webhook-signature"].split()) == 1
    assert len(server.events) == 2


@pytest.mark.spec(
    "mcp-events",
    "events/unsubscribe finds the subscription by its key, and never by its id",
    "NotFound where no subscription has the key",
)
def test_unsubscribe(events):
    with callback() as server:
        result = subscribe(events, server)
        store(events.api)
        key = {"name": EVENT, "delivery": {"url": server.url}}
        for wrong in (
            {"arguments": {"label": "x"}},
            {"delivery": {"url": server.url + "x"}},
            {"name": "no.such"},
        ):
            error = events.refused("unsubscribe", **key | wrong)
            assert error["code"] == -32023
        assert "id" in result
        assert events.do("unsubscribe", **key, id="sub_x")["resultType"] == "complete"
        error = events.refused("unsubscribe", **key)
        assert error["data"] == {"kind": "subscription"}
        dispatch()
    assert not server.events
    assert Endpoint.objects.get().deleted_at


@pytest.mark.spec(
    "mcp-events", "a principal's key does not reach another's subscription"
)
def test_other_accounts_and_clients_have_subscriptions_of_their_own(events, stranger):
    other = EventsClient(copy(events.api))
    other.api.token = personal_tokens.create(user=events.api.user, days=1).text
    theirs = EventsClient(stranger)
    with callback() as server:
        ids = {subscribe(each, server)["id"] for each in (events, other, theirs)}
        assert len(ids) == len(server.asked) == 3
        key = {"name": EVENT, "delivery": {"url": server.url}}
        theirs.do("unsubscribe", **key)
        assert EventSubscription.objects.filter(ended_at=None).count() == 2
        store(stranger)
        store(events.api)
        dispatch()
    assert len(server.events) == 2
    assert EndpointSecret.objects.count() == 3


@pytest.mark.spec("mcp-events", "ResourceExhausted names the limit")
def test_the_quota_is_the_accounts(events, settings, monkeypatch):
    most = settings.MCP_EVENTS_SUBSCRIPTIONS = 3
    smaller = replace(profiles.get(EVENTS_PROFILE), quota=most)
    monkeypatch.setitem(profiles.PROFILES, EVENTS_PROFILE, smaller)
    with callback() as server:
        for number in range(most):
            arguments = {"min_duration_ms": number}
            subscribe(events, server, arguments=arguments)
        error = refused(events, server)
        assert error["code"] == -32025
        assert error["data"] == {"limit": "subscriptions", "max": most}
        assert "events/unsubscribe" in error["message"]
        subscribe(events, server, arguments=arguments)  # a refresh
        with callback() as elsewhere:
            assert refused(events, elsewhere)["code"] == -32025
            assert not elsewhere.requests
    assert events.api.create()  # the quota of webhooks is another one


def test_challenges_have_a_limit(events, settings):
    settings.RECORDING_RATES = settings.RECORDING_RATES | {"challenge": "1/hour"}
    with callback() as server:
        server.challenge = 404, b""
        assert refused(events, server)["code"] == -32027
        error = refused(events, server)
        assert error["code"] == -32025
        assert error["data"] == {"limit": "challenges"}
        assert len(server.requests) == 1


@pytest.mark.spec("mcp-events", "Unsupported for a delivery mode that is not offered")
def test_another_mode_is_not_supported(events):
    with callback() as server:
        error = refused(events, server, delivery=server.delivery | {"mode": "push"})
    assert error["code"] == -32026
    assert error["data"] == {"feature": "deliveryMode", "value": "push"}


@pytest.mark.parametrize(
    "params",
    [
        {"delivery": None},
        {"delivery": []},
        {"delivery": {}},
        {"cursor": "x"},
        {"arguments": {"label": "a\0b"}},
        {"maxAgeMs": -1},
    ],
)
def test_wrong_parameters_change_nothing(events, params):
    with callback() as server:
        assert refused(events, server, **params)["code"] == -32602
        assert not server.requests
    assert not Endpoint.objects.exists()


def test_nothing_shows_the_secret(events, caplog, capfd):
    with callback(500) as server:
        subscribe(events, server)
        refused(events, server, delivery=server.delivery | {"mode": "x"})
        store(events.api)
        dispatch()
        key = server.secrets[0].removeprefix("whsec_")
        seen = caplog.text + "".join(capfd.readouterr())
        stored = list(Endpoint.objects.values()) + list(
            EventSubscription.objects.values()
        )
    assert key not in seen
    assert key not in str(stored)
