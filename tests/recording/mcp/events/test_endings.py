"""How subscriptions end, and what their receivers are told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from recording.accounts.erasure import erase
from recording.accounts.locks import locked_account
from recording.mcp.events import endings
from recording.models import EventSubscription, PersonalToken
from tests.recording.mcp.conftest import store
from tests.recording.mcp.events.callback import callback
from tests.recording.mcp.events.conftest import subscribe
from tests.recording.mcp.events.test_delivering import retry
from tests.threads import started
from tests.webhooks_core.engine import dispatch
from webhooks_core import tasks
from webhooks_core.models import Attempt, Delivery, Endpoint, Event
from webhooks_core.network.outcomes import Outcome

pytestmark = pytest.mark.django_db(transaction=True)

ERROR = {
    "code": -32024,
    "message": "Forbidden: access was revoked",
    "data": {"reason": "Access revoked"},
}


@pytest.mark.spec(
    "mcp-events",
    "a revoked client's subscription ends with a signed terminated envelope",
)
def test_a_revoked_client_is_told_once(events):
    with callback(204) as server:
        result = subscribe(events, server)
        server.statuses = [500]
        store(events.api)
        dispatch()
        PersonalToken.objects.revoke(timezone.now())
        server.statuses = [500, 204]
        assert endings.run()["disconnected"] == 1
        dispatch()
        assert endings.run() == dict.fromkeys(endings.run(), 0)  # it waits for a retry
        retry()
        assert server.events[-1] == {"type": "terminated", "error": ERROR}
        request = server.requests[-1]
        assert request.headers["webhook-id"].startswith("msg_terminated_")
        assert request.headers["X-MCP-Subscription-Id"] == result["id"]
        assert endings.run()["removed"] == 1
        store(events.api)
        dispatch()
    assert len(server.events) == 3
    endpoint = Endpoint.objects.get()
    assert (endpoint.slot, endpoint.deleted_at is not None) == (None, True)
    errors = Delivery.objects.order_by("pk").values_list("last_error", flat=True)
    assert errors[0] == "the subscription has ended"


def test_a_client_that_connects_again_subscribes_again(events):
    with callback() as server:
        subscribe(events, server)
        PersonalToken.objects.revoke(timezone.now())
        endings.run()
        PersonalToken.objects.update(revoked_at=None)
        again = subscribe(events, server)
        assert "deliveryStatus" not in again
        assert len(server.asked) == 2
        dispatch()
        endings.run()
        store(events.api)
        dispatch()
    assert [body.get("type") for body in server.events] == ["terminated", None]
    assert EventSubscription.objects.filter(ended_at=None).count() == 1


def test_time_ends_a_subscription_without_a_word(events):
    with callback(500) as server:
        subscribe(events, server)
        store(events.api)
        dispatch()
        EventSubscription.objects.update(expires_at=timezone.now())
        assert endings.run()["expired"] == 1
        # Here and not when it is due: what is paused never is.
        assert Delivery.objects.get().last_error == "endpoint deleted"
        assert retry() == 0
    assert len(server.events) == 1
    assert Endpoint.objects.get().deleted_at


def expire(*, is_over: bool) -> None:
    hours = timedelta(hours=0 if is_over else 1)
    EventSubscription.objects.update(expires_at=timezone.now() + hours)


def suspend(*, is_over: bool) -> None:
    EventSubscription.objects.update(expires_at=None)
    paused_at = timezone.now() - timedelta(days=8) if is_over else None
    Endpoint.objects.update(paused_at=paused_at)


def disconnect(*, is_over: bool) -> None:
    PersonalToken.objects.update(revoked_at=timezone.now() if is_over else None)


REASONS = pytest.mark.parametrize(
    ("kind", "reason"),
    [("expired", expire), ("dropped", suspend), ("disconnected", disconnect)],
)


def assert_goes_on() -> None:
    assert EventSubscription.objects.live(timezone.now()).exists()
    assert Endpoint.objects.get().deleted_at is None
    assert not Delivery.objects.exists()


@REASONS
def test_a_subscription_that_its_client_saves_meanwhile_goes_on(
    events, monkeypatch, kind, reason
):
    def save_first(account: int) -> Any:
        reason(is_over=False)
        return locked_account(account)

    with callback() as server:
        subscribe(events, server)
    reason(is_over=True)
    monkeypatch.setattr(endings, "locked_account", save_first)
    assert endings.run()[kind] == 0
    assert_goes_on()


@REASONS
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer")
def test_an_end_waits_for_a_refresh_that_is_not_committed_yet(events, kind, reason):
    with callback() as server:
        subscribe(events, server)
    reason(is_over=True)
    with locked_account(events.api.user.pk):
        upkeep = started(endings.run)
        reason(is_over=False)
    assert upkeep.result()[kind] == 0
    assert_goes_on()


def failures(endpoint, count, *, ok=0, started_at=None):
    """Store attempts of an endpoint."""
    event = Event.objects.create(
        public_id=f"evt_{timezone.now().timestamp()}",
        profile="recording",
        owner=endpoint.owner,
        type="summary.completed",
        body=b"{}",
        size=2,
    )
    delivery = Delivery.objects.create(
        public_id=event.public_id,
        event=event,
        endpoint=endpoint,
        status=Delivery.Status.FAILED,
        next_attempt_at=None,
    )
    Attempt.objects.bulk_create(
        Attempt(
            delivery=delivery,
            number=number,
            started_at=started_at or timezone.now(),
            outcome=Outcome.OK if number < ok else Outcome.HTTP,
            status_code=200 if number < ok else 500,
        )
        for number in range(count)
    )


@pytest.mark.spec(
    "mcp-events",
    "suspension on a sustained failure rate over a sample",
    "a refresh of suspended delivery resumes it",
    "deliveryStatus: active, lastDeliveryAt, lastError of a closed list",
)
def test_suspension_and_resumption(events):
    with callback(500) as server:
        subscribe(events, server)
        store(events.api)
        dispatch()
        endpoint = Endpoint.objects.get()
        failures(endpoint, 18)
        assert endings.run()["suspended"] == 0  # 19 attempts
        failures(endpoint, 2)
        assert endings.run()["suspended"] == 1
        store(events.api)
        assert dispatch() == 0
        server.statuses = [204]
        status = subscribe(events, server)["deliveryStatus"]
        assert status["active"] is False
        assert status["lastError"] == "http_5xx"
        assert status["lastDeliveryAt"] is None
        assert status["failedSince"].endswith("Z")
        retry()
        assert len({body["eventId"] for body in server.events}) == 2
        status = subscribe(events, server)["deliveryStatus"]
    assert (status["active"], status["lastError"]) == (True, None)
    assert status["lastDeliveryAt"]
    assert "failedSince" not in status


@pytest.mark.parametrize(
    ("count", "ok", "age"), [(40, 2, 0), (200, 10, 0), (40, 0, 61)]
)
def test_a_mixed_or_an_old_record_suspends_nothing(events, count, ok, age):
    with callback() as server:
        subscribe(events, server)
    endpoint = Endpoint.objects.get()
    Endpoint.objects.update(consecutive_failures=1)
    at = timezone.now() - timedelta(minutes=age)
    failures(endpoint, count, ok=ok, started_at=at)
    assert endings.run()["suspended"] == 0


def test_what_never_expires_ends_after_a_week_of_suspension(events, settings):
    settings.MCP_EVENTS_NO_EXPIRY = True
    with callback() as server:
        subscribe(events, server, ttlMs=None)
        Endpoint.objects.update(paused_at=timezone.now() - timedelta(days=6))
        assert endings.run()["dropped"] == 0
        Endpoint.objects.update(paused_at=timezone.now() - timedelta(days=8))
        assert endings.run()["dropped"] == 1
        dispatch()
    assert [body["type"] for body in server.events] == ["terminated"]


def test_a_deactivated_account_ends_its_subscriptions(events):
    with callback() as server:
        subscribe(events, server)
        events.api.user.is_active = False
        events.api.user.save()
        endings.run()
        dispatch()
        endings.run()
    assert [body["type"] for body in server.events] == ["terminated"]
    assert Endpoint.objects.get().deleted_at


@pytest.mark.parametrize("end", [lambda user: user.delete(), erase])
def test_a_deleted_account_leaves_nothing_and_sends_nothing(events, end):
    with callback(500) as server:
        subscribe(events, server)
        store(events.api)
        dispatch()
        count = len(server.requests)
        end(events.api.user)
        tasks.remove_ended_owners()
        dispatch()
    assert len(server.requests) == count
    for model in (EventSubscription, Endpoint, Delivery, Event):
        assert not model.objects.exists()
