"""Deliveries whose attempts our own deaths interrupted: a suspect is sent alone."""

from __future__ import annotations

from collections import Counter

import pytest
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.dispatch.stepped_dispatcher import (
    Answer,
    DiedError,
    SteppedDispatcher,
    died,
    ok,
)
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core.dispatch.decisions import pause_after_interruption
from webhooks_core.dispatch.sender import Sender
from webhooks_core.models import Delivery, DispatcherLease, EndpointQueue
from webhooks_core.network.transport import OutgoingRequest
from webhooks_core.upkeep.sweep import sweep

pytestmark = pytest.mark.usefixtures("plain", "commits_at_once")

URL = "http://127.0.0.1:9/hook"


def make_suspects(*deliveries: Delivery) -> None:
    pks = [delivery.pk for delivery in deliveries]
    Delivery.objects.filter(pk__in=pks).update(attempts=2, interruptions=2)


def run(answer: Answer, *, most: int = 100) -> list[list[int]]:
    """Do a run, with at most so many batches of requests; return the keys of each."""
    batches: list[list[int]] = []

    def note(dispatcher: SteppedDispatcher, requests: list[OutgoingRequest]) -> None:
        batches.append([request.key for request in requests])
        dispatcher.is_stopped = len(batches) == most

    SteppedDispatcher(note).run(answer)
    return batches


def test_a_delivery_that_kills_its_worker_takes_no_other_with_it(clock):
    for number in range(5):
        EndpointFactory.create(owner=f"owner {number}", url=URL, max_in_flight=5)
    for number in range(5):
        for _ in range(4):
            publish_event(f"owner {number}")
    poison, deaths = Delivery.objects.order_by("pk")[8].pk, 0
    while Delivery.objects.pending().exists():
        try:
            run(lambda request: (died if request.key == poison else ok)(request))
        except DiedError:
            deaths += 1
        clock.shift(61)
    assert deaths == 7
    killed = Delivery.objects.get(status=Delivery.Status.FAILED)
    assert killed.pk == poison
    assert (killed.interruptions, killed.lone_interruptions) == (7, 5)
    others = Delivery.objects.exclude(pk=poison)
    assert others.filter(status=Delivery.Status.DELIVERED).count() == 19
    assert not others.filter(interruptions__gt=2).exists()
    assert not others.filter(lone_interruptions__gt=0).exists()


def test_the_pauses_of_a_suspect_grow():
    pauses = [pause_after_interruption(count).total_seconds() for count in range(1, 9)]
    assert pauses == [0, 2, 4, 8, 16, 32, 60, 60]


def test_suspects_are_claimed_one_by_one_and_hide_nothing_that_waits_behind_them():
    EndpointFactory.create(url=URL, max_in_flight=2)  # reads five at once
    publish_events(14)
    pks = list(Delivery.objects.order_by("pk").values_list("pk", flat=True))
    make_suspects(*Delivery.objects.filter(pk__in=pks[:12]))
    batches = run(ok)
    assert [pk for batch in batches for pk in batch] == [*pks[12:], *pks[:12]]
    assert all(len(batch) == 1 for batch in batches[-12:])


def test_what_a_dispatcher_leaves_of_suspects_is_due_for_the_next_one(clock):
    EndpointFactory.create(url=URL)
    publish_events(2)
    first, second = Delivery.objects.order_by("pk")
    make_suspects(first, second)
    assert run(ok, most=1) == [[first.pk]]
    assert EndpointQueue.objects.get().next_due_at == timezone.now()
    clock.shift(10)
    assert sweep().repaired_queues == 0
    assert run(ok) == [[second.pk]]


@pytest.mark.django_db(transaction=True)
def test_a_dispatcher_ends_early_to_be_alone_with_each_suspect(monkeypatch, calls):
    in_flight: list[int] = []

    def count(sender, requests: list[OutgoingRequest]) -> None:
        if requests:
            claimed = Delivery.objects.filter(claimed_by__isnull=False)
            slots = DispatcherLease.objects.filter(slot__isnull=False)
            in_flight.append(claimed.count() if not slots.exists() else 0)
        real(sender, requests)

    real = Sender.submit
    monkeypatch.setattr(Sender, "submit", count)
    with receiver(204, delay=0.05) as server:
        EndpointFactory.create(url=server.url, owner="bob")
        EndpointFactory.create(url=server.url)
        publish_event("bob")
        publish_events(5)
        make_suspects(*Delivery.objects.order_by("pk")[2:5])
        assert dispatch(resident=True) == 6
    assert Counter(in_flight) == {0: 1, 1: 3}
    assert calls  # a successor serves the others meanwhile
    assert not EndpointQueue.objects.filter(leased_by__isnull=False).exists()
