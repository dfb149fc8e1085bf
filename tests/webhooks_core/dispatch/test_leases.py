"""Leases: slots, expiry, and the fencing token against those that come back."""

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.clock import later
from tests.receiver import receiver
from tests.webhooks_core.dispatch.stepped_dispatcher import (
    SteppedDispatcher,
)
from tests.webhooks_core.engine import dispatch, only_delivery
from tests.webhooks_core.factories import (
    EndpointFactory,
    publish_event,
    publish_events,
)
from webhooks_core.dispatch import claims, leases, queues
from webhooks_core.dispatch import dispatcher as engine
from webhooks_core.dispatch.claims import OpenClaims
from webhooks_core.dispatch.queues import LEASE_BATCH, LeasedQueues
from webhooks_core.models import Attempt, Delivery, DispatcherLease, EndpointQueue

pytestmark = pytest.mark.usefixtures("plain", "commits_at_once")


def test_there_are_as_many_leases_as_slots(settings):
    settings.WEBHOOK_DISPATCHERS = 2
    first, second = leases.acquire(), leases.acquire()
    assert first is not None
    assert second is not None
    assert {first.slot, second.slot} == {0, 1}
    assert leases.acquire() is None
    assert engine.dispatch() == 0
    leases.release(first)
    third = leases.acquire()
    assert third is not None
    assert third.slot == 0


def test_a_second_task_helps_with_what_is_due_and_waits_for_nothing(settings):
    settings.WEBHOOK_DISPATCHERS = 2
    leases.acquire()
    EndpointFactory.create()
    publish_event()
    EndpointQueue.objects.update(next_due_at=timezone.now() + timedelta(seconds=9))
    assert engine.dispatch(resident=True) == 0


def test_a_lost_race_for_the_last_slot_gives_no_lease(settings, monkeypatch):
    settings.WEBHOOK_DISPATCHERS = 1
    leases.acquire()
    # Both looked while the slot was free; the unique column decides.
    monkeypatch.setattr(type(DispatcherLease.objects.all()), "exists", lambda _: False)
    assert leases.acquire() is None


def test_a_lease_lasts_as_long_as_it_is_renewed(clock):
    lease = leases.acquire()
    assert lease is not None
    with later(seconds=14):
        assert leases.expire_dead() == 0
        leases.renew(lease)
    with later(seconds=28):
        assert leases.expire_dead() == 0
    with later(seconds=30):
        assert leases.expire_dead() == 1
        assert leases.expire_dead() == 0
        with pytest.raises(leases.LeaseLostError):
            leases.renew(lease)


def test_an_interrupted_attempt_started_when_it_was_claimed(clock):
    EndpointFactory.create()
    dead = SteppedDispatcher()
    clock.shift(10)
    publish_event()
    assert len(dead.claim()) == 1
    claimed_at = timezone.now()
    clock.shift(20)
    assert leases.expire_dead() == 1
    assert Attempt.objects.get().started_at == claimed_at


def test_a_dispatcher_whose_lease_has_expired_leases_and_claims_nothing():
    """No process would free a claim that it made now if it died again."""
    EndpointFactory.create()
    publish_event()
    stalled = leases.acquire()
    assert stalled is not None
    queues = LeasedQueues(stalled)
    queues.lease_due(timezone.now())
    with later(seconds=20):
        assert leases.expire_dead() == 1
        with pytest.raises(leases.LeaseLostError):
            OpenClaims(stalled, queues).claim_due(timezone.now())
    assert EndpointQueue.objects.get().leased_by is None
    assert (only_delivery().claimed_by, only_delivery().attempts) == (None, 0)


def test_owners_take_turns_when_queues_are_leased():
    lease = leases.acquire()
    assert lease is not None
    owners = ["many"] * (LEASE_BATCH + 8) + ["few"] * 2
    for endpoint in [EndpointFactory.create(owner=owner) for owner in owners]:
        EndpointQueue.objects.mark_due([endpoint.pk], at=timezone.now())
    assert LeasedQueues(lease).lease_due(timezone.now()) == LEASE_BATCH
    leased = EndpointQueue.objects.filter(leased_by=lease.pk)
    owners_of_leased = Counter(leased.values_list("endpoint__owner", flat=True))
    assert owners_of_leased == {"many": LEASE_BATCH - 2, "few": 2}


def test_an_owner_with_more_queues_than_are_leased_delays_no_other(monkeypatch):
    monkeypatch.setattr(queues, "MAX_QUEUES", 6)  # of 8
    monkeypatch.setattr(queues, "CANDIDATES", 4)
    lease, now = leases.acquire(), timezone.now()
    assert lease is not None
    leased = LeasedQueues(lease)
    many = [EndpointFactory.create(owner="many").pk for _ in range(12)]
    EndpointQueue.objects.mark_due(many, at=now - timedelta(seconds=9))
    while leased.lease_due(now):
        pass
    assert len(leased) == 6
    late = EndpointFactory.create(owner="late")
    EndpointQueue.objects.mark_due([late.pk], at=now)
    assert leased.lease_due(now) == 1
    assert leased[late.pk].owner[1] == "late"
    leased.release(keep=())
    assert leased.lease_due(now) > 0  # places are free again


def test_the_share_of_an_owner_is_divided_among_its_queues(monkeypatch):
    monkeypatch.setattr(claims, "MAX_CLAIMED", 15)  # of 20 places
    for _ in range(3):
        EndpointFactory.create(max_in_flight=8)
    publish_events(6)
    lease = leases.acquire()
    assert lease is not None
    queues = LeasedQueues(lease)
    queues.lease_due(timezone.now())
    requests = OpenClaims(lease, queues).claim_due(timezone.now())
    assert sorted(Counter(request.queue for request in requests).values()) == [5, 5, 5]


def test_a_dispatcher_whose_lease_is_lost_stops_and_leaves_the_queues_to_its_successor(
    monkeypatch,
):
    monkeypatch.setattr(engine, "RENEW_EVERY_S", 0.0)
    with receiver(204, is_open=False) as server:
        EndpointFactory.create(url=server.url, max_in_flight=1)
        publish_events(30)

        def expire_at_first() -> bool:
            if server.open:
                DispatcherLease.objects.update(
                    expires_at=timezone.now() - timedelta(seconds=1)
                )
                leases.expire_dead()
            return False

        dispatch(stop=expire_at_first)
        assert len(server.requests) == 1
        server.gate.set()
        dispatch()
    assert set(Delivery.objects.values_list("status", flat=True)) == {1}
    assert not EndpointQueue.objects.exclude(leased_by=None).exists()
