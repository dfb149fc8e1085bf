"""How a dispatcher ends: what it releases, and whom it wakes."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.engine import answer_after_release, dispatch, only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core.dispatch import leases
from webhooks_core.dispatch.sender import Sender
from webhooks_core.models import Delivery, DispatcherLease, EndpointQueue, EngineState

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def test_an_idle_dispatcher_wakes_no_successor(calls):
    assert dispatch() == 0
    assert calls == []


def test_a_dispatcher_that_sent_everything_wakes_no_successor(calls):
    with receiver(204) as server:
        EndpointFactory.create(url=server.url)
        publish_event()
        calls.clear()
        assert dispatch() == 1
    assert calls == []


def test_a_dispatcher_whose_time_is_over_wakes_a_successor_for_the_rest(
    monkeypatch, calls
):
    with receiver(204, is_open=False) as server:
        answer_after_release(monkeypatch, server)
        EndpointFactory.create(url=server.url, max_in_flight=1)
        publish_events(20)
        calls.clear()
        attempts = dispatch(run_s=0.2)
        assert attempts == len(server.requests) <= 1
        assert calls == ["webhooks_core.tasks.dispatch"]
        assert dispatch() == 20 - attempts
    assert Delivery.objects.filter(status=Delivery.Status.DELIVERED).count() == 20


def test_a_dispatcher_wakes_a_successor_for_a_retry_that_it_does_not_wait_for(
    calls, use_profile
):
    with receiver(500) as server:
        EndpointFactory.create(url=server.url)
        publish_event()
        calls.clear()
        dispatch(linger=timedelta(seconds=90), run_s=0.1)
    assert calls == ["webhooks_core.tasks.dispatch"]


def test_stop_releases_what_was_not_started_and_awaits_what_was(monkeypatch, calls):
    stopped = threading.Event()
    with receiver(204, is_open=False) as server:
        answer_after_release(monkeypatch, server)
        # One that has answered before: it gets two at once.
        EndpointFactory.create(
            url=server.url, max_in_flight=2, last_attempt_at=timezone.now()
        )
        publish_events(6)
        calls.clear()

        def stop() -> bool:
            if server.open == 2:
                stopped.set()
            return stopped.is_set()

        assert dispatch(stop=stop) == 2
    assert len(server.requests) == 2
    sent = Delivery.objects.filter(status=Delivery.Status.DELIVERED)
    kept = Delivery.objects.filter(status=Delivery.Status.PENDING)
    assert list(sent.values_list("attempts", "interruptions")) == [(1, 0)] * 2
    assert (
        list(kept.values_list("attempts", "interruptions", "claimed_by"))
        == [(0, 0, None)] * 4
    )
    assert EndpointQueue.objects.get().leased_by is None
    assert DispatcherLease.objects.get().ended_at is not None
    assert calls == []


@pytest.mark.parametrize("jump", [3600, -3600])
def test_a_successor_finds_a_lease_that_holds_whatever_the_clock_did(monkeypatch, jump):
    """It would expire a lease that only waits for its last results."""
    dead: list[int] = []
    release_unstarted, real_release = Sender.release_unstarted, leases.release_slot
    with time_machine.travel(timezone.now(), tick=True) as clock:

        def release_later(sender: Sender) -> None:
            clock.shift(jump)
            release_unstarted(sender)

        def release_slot(lease: DispatcherLease) -> None:
            real_release(lease)
            dead.append(leases.expire_dead())

        monkeypatch.setattr(Sender, "release_unstarted", release_later)
        monkeypatch.setattr(leases, "release_slot", release_slot)
        assert dispatch() == 0
    assert dead == [0]


def test_a_commit_after_the_last_check_of_a_dispatcher_wakes_another(
    calls, monkeypatch
):
    """The publisher still saw a live dispatcher, so only that one can wake another."""
    with receiver(204) as server:
        EndpointFactory.create(url=server.url)
        real = leases.release

        def end_late(lease, *, attempts):
            DispatcherLease.objects.filter(pk=lease.pk).update(slot=0)
            publish_event()
            DispatcherLease.objects.filter(pk=lease.pk).update(slot=None)
            real(lease, attempts=attempts)

        monkeypatch.setattr(leases, "release", end_late)
        assert dispatch() == 0
    assert calls == ["webhooks_core.tasks.dispatch"]
    assert EngineState.objects.get().woken_at is not None
    assert only_delivery().status == Delivery.Status.PENDING
    assert EndpointQueue.objects.due(timezone.now(), lease=0).exists()
