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
    DispatcherLeaseFactory,
    EndpointFactory,
    publish_event,
    publish_events,
)
from webhooks_core import endpoints
from webhooks_core.dispatch.sql import deliveries
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


def test_a_delivery_fails_for_good_after_its_last_retry():
    with receiver(500) as server:
        EndpointFactory.create(url=server.url)
        publish_event()
        now = timezone.now()
        for minutes in (0, 2, 10):
            with time_machine.travel(now + timedelta(minutes=minutes)):
                assert dispatch() == 1
    delivery = only_delivery()
    assert delivery.status == Delivery.Status.FAILED
    assert (delivery.attempts, delivery.next_attempt_at) == (3, None)
    assert Attempt.objects.count() == 3


def test_an_endpoint_is_disabled_after_its_limit_of_failures_and_its_deliveries_wait():
    with receiver(500) as server:
        target = EndpointFactory.create(url=server.url, max_in_flight=1)
        publish_events(5)
        dispatch()
        target.refresh_from_db()
        assert target.status == Endpoint.Status.DISABLED
        sent = len(server.requests)
        assert 3 <= sent <= 5
        with time_machine.travel(timezone.now() + timedelta(hours=1)):
            assert dispatch() == 0
        assert len(server.requests) == sent
        assert set(Delivery.objects.values_list("status", flat=True)) == {0}


def test_waiting_deliveries_are_sent_to_the_new_url_of_a_disabled_endpoint():
    with receiver(500) as broken, receiver(204) as sound:
        target = EndpointFactory.create(url=broken.url)
        publish_events(3)
        dispatch()
        target.refresh_from_db()
        assert target.status == Endpoint.Status.DISABLED
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


def test_a_deleted_endpoint_gets_nothing_and_its_deliveries_end():
    with receiver(204) as server:
        target = EndpointFactory.create(url=server.url)
        publish_event()
        assert endpoints.delete(target)
        assert not endpoints.delete(target)
        assert dispatch() == 0
    delivery = only_delivery()
    assert delivery.status == Delivery.Status.FAILED
    assert delivery.last_error == "endpoint deleted"
    assert server.requests == []


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


def test_only_one_dispatcher_takes_a_slot(settings):
    settings.WEBHOOK_DISPATCHERS = 1
    DispatcherLeaseFactory.create()
    with receiver(204) as server:
        EndpointFactory.create(url=server.url)
        publish_event()
        assert dispatch() == 0
    assert server.requests == []


def test_the_claims_of_a_dead_dispatcher_are_sent_again():
    with receiver(204) as server:
        EndpointFactory.create(url=server.url)
        publish_event()
        dead = DispatcherLeaseFactory.create(expired=True)
        EndpointQueue.objects.update(leased_by=dead.pk, next_due_at=None)
        deliveries.claim([only_delivery().pk], lease=dead.pk)
        assert dispatch() == 1
    delivery = only_delivery()
    assert delivery.status == Delivery.Status.DELIVERED
    assert (delivery.attempts, delivery.interruptions) == (2, 1)
    assert list(
        Attempt.objects.order_by("number").values_list("outcome", flat=True)
    ) == [
        "interrupted",
        "ok",
    ]


def test_a_queue_whose_notification_was_lost_is_repaired_by_the_sweep():
    with receiver(204) as server:
        EndpointFactory.create(url=server.url)
        publish_event()
        EndpointQueue.objects.update(next_due_at=None)
        with time_machine.travel(timezone.now() + timedelta(seconds=10)):
            from webhooks_core.upkeep.sweep import sweep

            assert sweep().repaired_queues == 1
            assert dispatch() == 1
    assert len(server.requests) == 1


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
