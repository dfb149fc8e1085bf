"""Leases: slots, expiry, and the fencing token against those that come back."""

from __future__ import annotations

import os
import subprocess
from datetime import timedelta

import pytest
import time_machine
from django.db import transaction
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.dispatch.stepped_dispatcher import (
    DiedError,
    SteppedDispatcher,
    died,
    failed,
    ok,
)
from tests.webhooks_core.engine import answer_after_release, dispatch, only_delivery
from tests.webhooks_core.factories import (
    DispatcherLeaseFactory,
    EndpointFactory,
    publish_event,
    publish_events,
)
from webhooks_core.database import limits
from webhooks_core.dispatch import dispatcher as engine
from webhooks_core.dispatch import leases
from webhooks_core.dispatch.claims import OpenClaims
from webhooks_core.dispatch.queues import LeasedQueues
from webhooks_core.models import Attempt, Delivery, DispatcherLease, EndpointQueue
from webhooks_core.worker import processes

pytestmark = pytest.mark.usefixtures("plain", "commits_at_once")

URL = "http://127.0.0.1:9/hook"


def later(seconds: float):
    return time_machine.travel(timezone.now() + timedelta(seconds=seconds), tick=False)


def test_there_are_as_many_leases_as_slots(settings):
    settings.WEBHOOK_DISPATCHERS = 2
    first, second = leases.acquire(), leases.acquire()
    assert first is not None
    assert second is not None
    assert {first.slot, second.slot} == {0, 1}
    assert leases.acquire() is None
    assert engine.dispatch() == 0
    leases.release_slot(first)
    third = leases.acquire()
    assert third is not None
    assert third.slot == 0


class TestTaskThatWasQueuedLongAgo:
    def run(self) -> int:
        return engine.dispatch(resident=True, run_s=0)

    def test_it_ends_at_once_beside_a_resident_dispatcher_that_has_no_more_work(
        self, settings, django_assert_max_num_queries
    ):
        settings.WEBHOOK_DISPATCHERS = 2
        leases.acquire()
        with django_assert_max_num_queries(2):
            assert self.run() == 0
        assert DispatcherLease.objects.count() == 1

    def test_it_ends_at_once_if_every_slot_is_taken(
        self, settings, django_assert_max_num_queries
    ):
        settings.WEBHOOK_DISPATCHERS = 1
        leases.acquire()
        EndpointFactory.create(url=URL)
        publish_event()
        with django_assert_max_num_queries(1):
            assert self.run() == 0

    def test_it_helps_with_work_that_nobody_has_leased(self, settings):
        settings.WEBHOOK_DISPATCHERS = 2
        leases.acquire()
        EndpointFactory.create(url=URL)
        publish_event()
        assert leases.is_dispatcher_wanted()

    def test_it_replaces_a_dispatcher_of_this_machine_that_is_gone(self, monkeypatch):
        leases.acquire()
        monkeypatch.setattr(processes, "is_alive", lambda _: False)
        assert leases.is_dispatcher_wanted()


def test_a_lost_race_for_the_last_slot_gives_no_lease(settings, monkeypatch):
    settings.WEBHOOK_DISPATCHERS = 1
    leases.acquire()
    # Both looked while the slot was free; the unique column decides.
    monkeypatch.setattr(type(DispatcherLease.objects.all()), "exists", lambda _: False)
    assert leases.acquire() is None


def test_a_lease_lasts_as_long_as_it_is_renewed(clock):
    lease = leases.acquire()
    assert lease is not None
    with later(14):
        assert leases.expire_dead() == 0
        assert leases.renew(lease)
    with later(28):
        assert leases.expire_dead() == 0
    with later(30):
        assert leases.expire_dead() == 1
        assert leases.expire_dead() == 0
        assert not leases.renew(lease)


def test_a_lease_without_a_slot_expires_too_when_its_process_dies():
    EndpointFactory.create(url=URL)
    publish_event()
    dead = SteppedDispatcher()
    dead.claim()
    leases.release_slot(dead.lease)
    with later(16):
        assert leases.expire_dead() == 1
    assert only_delivery().claimed_by is None


def test_a_lease_from_before_the_clock_was_set_back_is_void():
    EndpointFactory.create(url=URL)
    publish_event()
    with later(3600):
        EndpointQueue.objects.update(next_due_at=timezone.now())
        SteppedDispatcher().claim()
    assert DispatcherLease.objects.live().exists()
    assert leases.expire_dead() == 1
    assert not DispatcherLease.objects.live().exists()


def test_five_interruptions_fail_a_delivery_and_do_not_count_as_failures():
    target = EndpointFactory.create(url=URL)
    publish_event()
    for _ in range(5):
        Delivery.objects.update(next_attempt_at=timezone.now())
        with pytest.raises(DiedError):
            SteppedDispatcher().run(died)
    delivery = only_delivery()
    assert (delivery.status, delivery.attempts, delivery.interruptions) == (2, 5, 5)
    assert delivery.last_error == "interrupted: the worker died"
    assert set(Attempt.objects.values_list("outcome", flat=True)) == {"interrupted"}
    assert Attempt.objects.count() == 5
    target.refresh_from_db()
    assert target.consecutive_failures == 0


def test_an_interrupted_attempt_started_when_it_was_claimed(clock):
    EndpointFactory.create(url=URL)
    dead = SteppedDispatcher()
    clock.shift(10)
    publish_event()
    assert len(dead.claim()) == 1
    claimed_at = timezone.now()
    clock.shift(20)
    assert leases.expire_dead() == 1
    assert Attempt.objects.get().started_at == claimed_at


def test_interruptions_do_not_shorten_the_retries():
    EndpointFactory.create(url=URL)
    publish_event()
    for _ in range(4):
        Delivery.objects.update(next_attempt_at=timezone.now())
        with pytest.raises(DiedError):
            SteppedDispatcher().run(died)
    for minutes in (1, 3, 10):
        with later(60 * minutes):
            SteppedDispatcher().run(failed)
    delivery = only_delivery()
    assert (delivery.status, delivery.attempts, delivery.interruptions) == (2, 7, 4)
    assert delivery.last_error == "HTTP 500"


def test_a_dispatcher_whose_lease_has_expired_leases_and_claims_nothing():
    """No process would free a claim that it made now if it died again."""
    EndpointFactory.create(url=URL)
    publish_event()
    stalled = leases.acquire()
    assert stalled is not None
    queues = LeasedQueues(stalled)
    queues.lease_due(timezone.now())
    with later(20):
        assert leases.expire_dead() == 1
        with pytest.raises(leases.LeaseLostError):
            queues.lease_due(timezone.now())
        with pytest.raises(leases.LeaseLostError):
            OpenClaims(stalled, queues).claim_due(timezone.now())
    assert EndpointQueue.objects.get().leased_by is None
    assert (only_delivery().claimed_by, only_delivery().attempts) == (None, 0)


def test_a_queue_has_one_lease_also_after_the_first_dispatcher_comes_back():
    EndpointFactory.create(url=URL)
    publish_event()
    stalled = SteppedDispatcher()
    [request] = stalled.claim()
    with later(20):
        successor = SteppedDispatcher()
        [again] = successor.claim()
        assert again.key == request.key
        with pytest.raises(leases.LeaseLostError):
            stalled.record([request], ok)
        stalled.finish()
        assert EndpointQueue.objects.get().leased_by == successor.lease.pk
        successor.record([again], ok)
    delivery = only_delivery()
    assert (delivery.status, delivery.attempts, delivery.interruptions) == (1, 2, 1)


def test_a_dispatcher_whose_lease_is_lost_stops_and_leaves_the_queues_to_its_successor(
    monkeypatch,
):
    monkeypatch.setattr(engine, "RENEW_EVERY_S", 0.0)
    with receiver(204, is_open=False) as server:
        EndpointFactory.create(url=server.url, max_in_flight=1)
        publish_events(30)
        answer_after_release(monkeypatch, server)

        def expire_at_first() -> bool:
            if server.open:
                DispatcherLease.objects.update(
                    expires_at=timezone.now() - timedelta(seconds=1)
                )
                leases.expire_dead()
            return False

        dispatch(stop=expire_at_first)
        assert len(server.requests) == 1
        dispatch()
    assert set(Delivery.objects.values_list("status", flat=True)) == {1}
    assert not EndpointQueue.objects.exclude(leased_by=None).exists()


def test_a_dispatcher_does_not_expire_its_own_lease_when_the_clock_jumps_forward():
    with receiver(204) as server:
        EndpointFactory.create(url=server.url)
        publish_event()
        with time_machine.travel(timezone.now()) as clock:

            def jump() -> bool:
                if not server.requests:
                    clock.shift(3600)
                return False

            dispatch(stop=jump)
    assert len(server.requests) == 1
    assert Delivery.objects.values_list("status", "interruptions").get() == (1, 0)


@pytest.mark.skipif(not processes.boot_id(), reason="the machine is not known")
class TestProcessGone:
    def gone(self) -> int:
        process = subprocess.Popen(["true"])
        process.wait()
        return process.pid

    def lease(self, **fields) -> DispatcherLease:
        process = {
            "boot_id": processes.boot_id(),
            "pid": os.getpid(),
            "address": limits.client_address(),
        }
        return DispatcherLeaseFactory.create(**process | fields)

    def test_its_lease_expires_before_its_time(self):
        self.lease(pid=self.gone())
        assert leases.expire_dead() == 1
        assert leases.expire_dead() == 0

    def test_a_live_one_keeps_its_lease(self):
        self.lease()
        assert leases.expire_dead() == 0

    def test_pids_of_another_machine_mean_nothing_here(self):
        self.lease(pid=self.gone(), boot_id="another")
        assert leases.expire_dead() == 0

    def test_pids_of_a_clone_of_this_machine_mean_nothing_here(self):
        """It has our boot id, and another address."""
        self.lease(pid=self.gone(), address="192.0.2.1")
        assert leases.expire_dead() == 0

    def test_a_clone_does_not_go_on_with_the_lease_of_its_original(self):
        lease = self.lease(address="192.0.2.1")
        with pytest.raises(leases.LeaseLostError), transaction.atomic():
            leases.lock_after_outage(lease)

    def test_where_the_machine_is_unknown_the_lease_decides(self, monkeypatch):
        monkeypatch.setattr(processes, "boot_id", lambda: "")
        self.lease(pid=self.gone(), boot_id="")
        assert leases.expire_dead() == 0
