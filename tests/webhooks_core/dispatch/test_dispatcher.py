"""The way of an event: published, claimed, sent, recorded."""

import threading

import pytest
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.engine import (
    answer_after_release,
    dispatch,
    only_delivery,
)
from tests.webhooks_core.factories import (
    EndpointFactory,
    publish_event,
    publish_events,
)
from webhooks_core.dispatch import leases
from webhooks_core.models import (
    Delivery,
    DispatcherLease,
    EndpointQueue,
    EngineState,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def test_a_dispatcher_leaves_nothing_behind():
    with receiver(500, 204) as server:
        EndpointFactory.create(url=server.url)
        publish_event()
        publish_event()
        dispatch()
    assert not DispatcherLease.objects.exists()
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


def test_stop_gives_back_what_was_not_started_and_awaits_what_was(monkeypatch, calls):
    stopped = threading.Event()
    with receiver(204, is_open=False) as server:
        answer_after_release(monkeypatch, server)
        EndpointFactory.create(url=server.url, max_in_flight=2)
        publish_events(6)
        calls.clear()

        def stop() -> bool:
            if server.open == 2:
                stopped.set()
            return stopped.is_set()

        assert dispatch(stop=stop, resident=True) == 2
    assert len(server.requests) == 2
    rows = Delivery.objects.values_list(
        "status", "attempts", "interruptions", "claimed_by"
    )
    assert sorted(rows, key=str) == [(0, 0, 0, None)] * 4 + [(1, 1, 0, None)] * 2
    assert EndpointQueue.objects.get().leased_by is None
    assert not DispatcherLease.objects.exists()
    assert calls == []


def test_a_commit_after_the_last_check_of_a_dispatcher_wakes_another(
    calls, monkeypatch
):
    """The publisher still saw a live dispatcher, so only that one can wake another."""
    with receiver(204) as server:
        EndpointFactory.create(url=server.url)
        real = leases.release

        def end_late(lease):
            publish_event()
            real(lease)

        monkeypatch.setattr(leases, "release", end_late)
        assert dispatch() == 0
    assert calls == ["webhooks_core.tasks.dispatch"]
    assert EngineState.objects.get().woken_at is not None
    assert only_delivery().status == Delivery.Status.PENDING
    assert EndpointQueue.objects.due(timezone.now(), lease=0).exists()
