"""Deliveries whose attempts our own deaths interrupted, and those that may be the cause."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.clock import travel
from tests.webhooks_core.dispatch.stepped_dispatcher import (
    DiedError,
    SteppedDispatcher,
    died,
    failed,
    ok,
)
from tests.webhooks_core.engine import only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core.dispatch import leases
from webhooks_core.dispatch.leases import pause_after_interruption
from webhooks_core.models import Delivery

pytestmark = pytest.mark.usefixtures("plain", "commits_at_once")


def die() -> None:
    """Run a dispatcher that dies at its first request."""
    with pytest.raises(DiedError):
        SteppedDispatcher().run(died)
    Delivery.objects.pending().update(next_attempt_at=timezone.now())


def test_a_delivery_that_kills_its_worker_fails_and_takes_no_other_with_it(clock):
    for number in range(5):
        EndpointFactory.create(owner=f"owner {number}", max_in_flight=5)
        for _ in range(4):
            publish_event(f"owner {number}")
    poison, deaths = Delivery.objects.order_by("pk")[8].pk, 0
    while Delivery.objects.pending().exists():
        dispatcher = SteppedDispatcher()
        dispatcher.sender.answer_all_with = lambda request: (
            died if request.key == poison else ok
        )(request)
        try:
            for _ in range(30):
                dispatcher.work()
                clock.shift(0.5)
        except DiedError:
            deaths += 1
            leases.release(dispatcher.lease)
        else:
            dispatcher.finish(ok)
        clock.shift(91)
    assert deaths == 7
    killed = Delivery.objects.get(status=Delivery.Status.FAILED)
    assert killed.pk == poison
    assert (killed.interruptions, killed.lone_interruptions) == (7, 5)
    others = Delivery.objects.exclude(pk=poison)
    assert others.filter(status=Delivery.Status.DELIVERED).count() == 19
    assert not others.filter(lone_interruptions__gt=0).exists()


def test_the_pauses_of_a_suspect_grow():
    pauses = [pause_after_interruption(count).total_seconds() for count in range(1, 9)]
    assert pauses == [0, 2, 4, 8, 16, 32, 60, 60]


def test_suspects_are_sent_one_by_one_beside_others(clock):
    EndpointFactory.create(max_in_flight=2)
    publish_events(6)
    pks = list(Delivery.objects.order_by("pk").values_list("pk", flat=True))
    Delivery.objects.filter(pk__in=pks[:3]).update(attempts=2, interruptions=2)
    batches: list[list[int]] = []
    dispatcher = SteppedDispatcher(
        lambda _, requests: batches.append([request.key for request in requests])
    )
    dispatcher.sender.answer_all_with = ok
    for _ in range(12):
        dispatcher.work()
        clock.shift(0.1)
    assert sorted(pk for batch in batches for pk in batch) == pks
    assert all(len({*batch} & {*pks[:3]}) <= 1 for batch in batches)
    assert not Delivery.objects.pending().exists()


def test_interruptions_do_not_shorten_the_retries():
    EndpointFactory.create()
    publish_event()
    for _ in range(4):
        die()
    for minutes in (1, 3, 10):
        with travel(timezone.now() + timedelta(minutes=minutes)):
            SteppedDispatcher().run(failed)
    delivery = only_delivery()
    assert (delivery.status, delivery.attempts, delivery.interruptions) == (2, 7, 4)
    assert delivery.last_error == "HTTP 500"
