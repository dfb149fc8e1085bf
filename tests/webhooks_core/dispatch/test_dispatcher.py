"""The way of an event: published, claimed, sent, recorded."""

from __future__ import annotations

from datetime import timedelta

import orjson
import pytest
import time_machine
from django.utils import timezone

from tests.receiver import receiver
from tests.signatures import verify_timestamped
from tests.webhooks_core.engine import answer_after_release, dispatch, only_delivery
from tests.webhooks_core.factories import (
    EndpointFactory,
    publish_event,
    publish_events,
)
from webhooks_core import endpoints
from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    Endpoint,
    EndpointQueue,
    EngineState,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def test_an_event_arrives_signed_and_its_delivery_is_delivered():
    with receiver(204) as server:
        created = endpoints.create(
            profile="plain", owner="alice", url=server.url, event_types=["thing.made"]
        )
        published = publish_event()
        assert dispatch() == 1
    [request] = server.requests
    assert request.body == bytes(published.body)
    assert orjson.loads(request.body)["id"] == published.public_id
    assert request.headers["Content-Type"] == "application/json"
    verify_timestamped(
        created.secret,
        signature=request.headers["X-Plain-Signature"],
        body=request.body,
        now=request.at,
        tolerance_s=5,
    )
    delivery = only_delivery()
    assert delivery.status == Delivery.Status.DELIVERED
    assert delivery.attempts == 1
    assert delivery.delivered_at is not None
    assert delivery.next_attempt_at is None
    attempt = Attempt.objects.get()
    assert (attempt.number, attempt.outcome, attempt.status_code) == (1, "ok", 204)


@pytest.mark.spec("recording", "at-least-once: a retry carries the same event id")
def test_a_failure_is_retried_with_the_same_bytes_and_a_fresh_signature():
    with receiver(500, 204) as server:
        EndpointFactory.create(url=server.url)
        publish_event()
        dispatch()
        failed = only_delivery()
        assert failed.status == Delivery.Status.PENDING
        assert failed.last_error == "HTTP 500"
        assert failed.attempts == 1
        assert failed.next_attempt_at is not None
        assert failed.next_attempt_at > timezone.now() + timedelta(seconds=58)
        assert Endpoint.objects.get().consecutive_failures == 1
        assert dispatch() == 0  # not due yet
        with time_machine.travel(timezone.now() + timedelta(seconds=61)):
            assert dispatch() == 1
    first, second = server.requests
    assert first.body == second.body
    assert first.headers["X-Delivery"] == second.headers["X-Delivery"]
    assert int(second.headers["X-Timestamp"]) >= int(first.headers["X-Timestamp"]) + 60
    delivered = only_delivery()
    assert delivered.status == Delivery.Status.DELIVERED
    assert (delivered.attempts, delivered.last_error) == (2, "HTTP 500")
    assert Endpoint.objects.get().consecutive_failures == 0


def test_waiting_deliveries_are_sent_to_the_new_url_of_a_disabled_endpoint():
    with receiver(500) as broken, receiver(204) as sound:
        target = EndpointFactory.create(url=broken.url)
        publish_events(3)
        dispatch()
        target.refresh_from_db()
        assert target.status == Endpoint.Status.DISABLED
        with time_machine.travel(timezone.now() + timedelta(hours=1)):
            assert dispatch() == 0
        endpoints.update(target, url=sound.url)
        assert dispatch() == 3
    assert len(sound.requests) == 3
    target.refresh_from_db()
    assert (target.status, target.consecutive_failures) == (1, 0)


def test_no_more_than_max_in_flight_requests_run_at_once_per_endpoint():
    def answer_when_three_wait() -> bool:
        if server.open == 3:
            server.gate.set()
        return False

    with receiver(204, is_open=False) as server:
        # One that has answered before: it gets more than one at once.
        EndpointFactory.create(
            url=server.url, max_in_flight=3, last_attempt_at=timezone.now()
        )
        publish_events(30)
        assert dispatch(stop=answer_when_three_wait) == 30
    assert server.peak == 3


def test_a_hanging_receiver_delays_no_other(monkeypatch):
    def all_others_are_there() -> bool:
        return len(quick.requests) == 40 and len(hung.requests) == 1

    with receiver(204, is_open=False) as hung, receiver(204) as quick:
        answer_after_release(monkeypatch, hung)
        EndpointFactory.create(url=hung.url)
        EndpointFactory.create(url=quick.url)
        publish_events(40)
        assert dispatch(stop=all_others_are_there) == 41


def test_a_dispatcher_leaves_nothing_behind():
    with receiver(500, 204) as server:
        EndpointFactory.create(url=server.url)
        publish_event()
        publish_event()
        dispatch()
    lease = DispatcherLease.objects.get()
    assert lease.slot is None
    assert lease.ended_at is not None
    assert lease.attempts == 2
    queue = EndpointQueue.objects.get()
    assert queue.leased_by is None
    waiting = Delivery.objects.get(status=Delivery.Status.PENDING)
    assert queue.next_due_at == waiting.next_attempt_at
    assert waiting.claimed_by is None


def test_a_dispatcher_with_more_due_than_it_leases_wakes_another(
    settings, calls, monkeypatch
):
    from webhooks_core.dispatch import dispatcher as engine
    from webhooks_core.dispatch import queues

    settings.WEBHOOK_DISPATCHERS = 2
    monkeypatch.setattr(queues, "LEASE_BATCH", 2)
    monkeypatch.setattr(engine, "LEASE_BATCH", 2)
    with receiver(204) as server:
        for number in range(6):
            EndpointFactory.create(url=server.url, owner=f"owner {number}")
            publish_event(f"owner {number}")
        calls.clear()
        EngineState.objects.update(woken_at=None)
        assert dispatch() == 6
    assert calls == ["webhooks_core.tasks.dispatch"]
