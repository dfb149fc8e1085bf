"""An endpoint's own limits: how many at once, how many per second, in which order."""

from __future__ import annotations

import threading
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.dispatch.stepped_dispatcher import (
    SteppedDispatcher,
    failed,
    ok,
    timed_out,
    untried,
)
from tests.webhooks_core.engine import answer_after_release, dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core import endpoints, publishing
from webhooks_core.dispatch import leases
from webhooks_core.endpoints import LimitError
from webhooks_core.models import (
    Delivery,
    DispatcherLease,
    Endpoint,
    EndpointQueue,
)
from webhooks_core.owners import replays
from webhooks_core.upkeep import stats
from webhooks_core.upkeep.sweep import sweep

pytestmark = pytest.mark.usefixtures("plain", "commits_at_once")

URL = "http://127.0.0.1:9/hook"


def events(count: int) -> list[int]:
    return [event.pk for event in publish_events(count)]


def sent_of(requests) -> list[int]:
    """Return the ids of the events that requests carry, in their order."""
    events = dict(Delivery.objects.values_list("pk", "event"))
    return [events[request.key] for request in requests]


class TestFirstRequest:
    """Many receivers that never answer would hold up the other owners with their connections."""

    def test_an_endpoint_has_answered_unless_it_is_new_or_timed_out(self):
        EndpointFactory.create(url=URL, max_in_flight=3)
        dispatcher, answered = SteppedDispatcher(), []
        for result in (timed_out, failed, ok, timed_out, ok):
            events(1)
            [request] = dispatcher.claim()
            answered.append(request.has_answered)
            dispatcher.record([request], result)
            Delivery.objects.all().delete()
        assert answered == [False, False, True, True, False]

    def test_its_first_answer_lets_the_others_start(self):
        first, others = threading.Event(), threading.Event()

        def wait() -> None:
            (others if len(server.requests) > 1 else first).wait()

        def answer() -> bool:
            if server.requests:
                first.set()
            if server.open == 4:
                others.set()
            return False

        with receiver(204) as server:
            server.gate = SimpleNamespace(wait=wait, set=others.set)
            EndpointFactory.create(url=server.url, max_in_flight=4)
            events(40)
            dispatch(stop=answer)
        assert len(server.requests) == 40
        assert server.peak == 4

    def test_one_that_hangs_gets_one(self, monkeypatch):
        looks = []

        def looked_long_enough() -> bool:
            looks.extend(server.requests[:1])
            return len(looks) == 20

        with receiver(204, is_open=False) as server:
            answer_after_release(monkeypatch, server)
            EndpointFactory.create(url=server.url, max_in_flight=4)
            events(8)
            dispatch(stop=looked_long_enough)
        assert len(server.requests) == 1

    def test_what_exceeds_its_rate_later_starts_at_once(self, monkeypatch):
        with receiver(204, is_open=False) as server:
            answer_after_release(monkeypatch, server)
            EndpointFactory.create(url=server.url, max_in_flight=3, rate_per_second=3)
            events(3)
            dispatch(stop=lambda: server.open == 3)
        assert len(server.requests) == 3


class TestRate:
    def test_no_second_sees_more_than_the_rate(self, clock):
        EndpointFactory.create(url=URL, rate_per_second=3, max_in_flight=10)
        events(10)
        dispatcher, claims = SteppedDispatcher(), []
        for _ in range(16):
            claimed = dispatcher.claim()
            claims += [timezone.now()] * len(claimed)
            dispatcher.record(claimed, ok)
            clock.shift(0.25)
        assert len(claims) == 10
        for first, fourth in zip(claims, claims[3:], strict=False):
            assert fourth - first >= timedelta(seconds=1)
        assert claims[-1] - claims[0] == timedelta(seconds=3)  # and not slower either

    def test_below_the_rate_the_limit_decides_what_is_claimed(self, clock):
        EndpointFactory.create(url=URL, rate_per_second=100, max_in_flight=2)
        events(5)
        dispatcher = SteppedDispatcher()
        first = dispatcher.claim()
        assert len(first) == 2
        assert dispatcher.claim() == []
        dispatcher.record([first[0]], ok)
        assert len(dispatcher.claim()) == 1  # nothing waits in the sender for its turn

    @pytest.mark.parametrize("how", ["leaves", "dies"])
    def test_the_rate_holds_across_two_dispatchers_in_a_row(self, clock, how):
        EndpointFactory.create(url=URL, rate_per_second=2, max_in_flight=10)
        events(6)
        first = SteppedDispatcher()
        first.record(first.claim(), ok)
        if how == "leaves":
            first.finish()
        else:
            DispatcherLease.objects.update(
                expires_at=timezone.now() - timedelta(seconds=1)
            )
            assert leases.expire_dead() == 1
        second = SteppedDispatcher()
        assert second.claim() == []
        clock.shift(0.9)
        assert second.claim() == []
        clock.shift(0.2)
        assert len(second.claim()) == 2

    def test_a_not_before_outlives_a_dispatcher_that_claimed_nothing(self, clock):
        EndpointFactory.create(url=URL, rate_per_second=1)
        events(2)
        first, second = SteppedDispatcher(), None
        first.record(first.claim(), ok)
        first.finish()
        second = SteppedDispatcher()
        assert second.claim() == []
        second.finish()
        assert SteppedDispatcher().claim() == []

    def test_a_clock_that_is_set_back_delays_nothing_for_longer_than_a_second(
        self, clock
    ):
        EndpointFactory.create(url=URL, rate_per_second=1)
        events(3)
        dispatcher = SteppedDispatcher()
        dispatcher.record(dispatcher.claim(), ok)
        clock.shift(-3600)
        Delivery.objects.waiting().update(next_attempt_at=timezone.now())
        EndpointQueue.objects.update(next_due_at=timezone.now())
        assert dispatcher.claim() == []
        clock.shift(1.1)
        assert len(dispatcher.claim()) == 1

    def test_without_a_rate_nothing_is_delayed(self, clock):
        target = EndpointFactory.create(url=URL, rate_per_second=1)
        events(3)
        dispatcher = SteppedDispatcher()
        dispatcher.record(dispatcher.claim(), ok)
        endpoints.update(target, rate_per_second=None)
        clock.shift(1)
        assert len(dispatcher.claim()) == 2


class TestOrder:
    def test_one_follows_the_other_only_when_it_has_ended(self, clock):
        EndpointFactory.create(url=URL, in_order=True)
        first, second, third = events(3)
        dispatcher = SteppedDispatcher()
        claimed = dispatcher.claim()
        assert sent_of(claimed) == [first]
        assert dispatcher.claim() == []
        dispatcher.record([claimed[0]], failed)
        assert dispatcher.claim() == []
        clock.shift(61)
        again = dispatcher.claim()
        assert sent_of(again) == [first]
        dispatcher.record([again[0]], ok)
        then = dispatcher.claim()
        assert sent_of(then) == [second]
        dispatcher.record([then[0]], ok)
        assert sent_of(dispatcher.claim()) == [third]

    def test_one_that_failed_for_good_lets_the_next_one_go(self, clock):
        EndpointFactory.create(url=URL, in_order=True)
        first, second = events(2)
        dispatcher = SteppedDispatcher()
        for _ in range(3):
            claimed = dispatcher.claim()
            assert sent_of(claimed) == [first]
            dispatcher.record([claimed[0]], failed)
            clock.shift(301)
        Endpoint.objects.update(status=Endpoint.Status.ACTIVE)
        EndpointQueue.objects.update(next_due_at=timezone.now())
        assert sent_of(dispatcher.claim()) == [second]

    @pytest.mark.parametrize("how", ["leaves", "dies"])
    def test_the_order_holds_when_another_dispatcher_continues(self, clock, how):
        EndpointFactory.create(url=URL, in_order=True)
        first, _ = events(2)
        dispatcher = SteppedDispatcher()
        claimed = dispatcher.claim()
        if how == "leaves":
            dispatcher.record([claimed[0]], failed)
            dispatcher.finish()
            clock.shift(61)
        else:
            DispatcherLease.objects.update(
                expires_at=timezone.now() - timedelta(seconds=1)
            )
            leases.expire_dead()
        assert sent_of(SteppedDispatcher().claim()) == [first]

    def test_a_released_delivery_is_the_first_again(self, clock):
        EndpointFactory.create(url=URL, in_order=True)
        first, _ = events(2)
        dispatcher = SteppedDispatcher()
        dispatcher.record(dispatcher.claim(), untried)
        assert sent_of(dispatcher.claim()) == [first]

    def test_a_replay_of_an_earlier_event_goes_first(self, clock):
        EndpointFactory.create(url=URL, in_order=True)
        first, second, _ = events(3)
        dispatcher = SteppedDispatcher()
        [claimed] = dispatcher.claim()
        dispatcher.record([claimed], ok)
        replays.replay(Delivery.objects.get(pk=claimed.key))
        then = dispatcher.claim()
        assert sent_of(then) == [second]  # it was claimed before the replay
        dispatcher.record(then, ok)
        assert sent_of(dispatcher.claim()) == [first]

    def test_deliveries_behind_a_retry_are_neither_lost_nor_overdue(self, clock):
        EndpointFactory.create(url=URL, in_order=True)
        events(2)
        dispatcher = SteppedDispatcher()
        dispatcher.record(dispatcher.claim(), failed)
        dispatcher.finish()
        clock.shift(30)
        assert sweep().repaired_queues == 0
        assert stats.oldest_due(timezone.now()) == timedelta(0)
        clock.shift(40)
        EndpointQueue.objects.update(next_due_at=None)
        assert sweep().repaired_queues == 1
        assert stats.oldest_due(timezone.now()) == timedelta(seconds=10)

    def test_when_order_no_longer_counts_the_others_go_at_once(self, clock):
        target = EndpointFactory.create(url=URL, in_order=True)
        _, second, third = events(3)
        dispatcher = SteppedDispatcher()
        dispatcher.record(dispatcher.claim(), failed)
        endpoints.update(target, in_order=False)
        assert sent_of(dispatcher.claim()) == [second, third]

    def test_when_order_begins_to_count_what_is_in_flight_ends_first(self, clock):
        target = EndpointFactory.create(url=URL, max_in_flight=2)
        events(5)
        dispatcher = SteppedDispatcher()
        claimed = dispatcher.claim()
        assert len(claimed) == 4
        endpoints.update(target, in_order=True)
        dispatcher.record(claimed[:3], ok)
        assert dispatcher.claim() == []
        dispatcher.record([claimed[3]], ok)
        assert len(dispatcher.claim()) == 1

    def test_a_large_fan_out_makes_theirs_before_any_later_event(self, monkeypatch):
        monkeypatch.setattr(publishing, "FANOUT_BATCH", 2)
        for number in range(6):
            EndpointFactory.create(url=f"{URL}/{number}", in_order=number in (1, 4, 5))
        first = publish_event()
        ordered = Delivery.objects.filter(event=first, endpoint__in_order=True)
        assert ordered.count() == 3
        while publishing.continue_fan_out():
            pass
        assert Delivery.objects.filter(event=first).count() == 6


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_in_flight", 0),
        ("max_in_flight", 513),
        ("max_in_flight", None),
        ("rate_per_second", 0),
        ("rate_per_second", -1),
        ("rate_per_second", "many"),
        ("in_order", "perhaps"),
    ],
)
def test_an_invalid_limit_is_refused_and_changes_nothing(name, value):
    target = EndpointFactory.create(url=URL)
    with pytest.raises(LimitError, match=name):
        endpoints.update(target, description="new", **{name: value})
    with pytest.raises(LimitError, match=name):
        EndpointFactory.create(url=URL, **{name: value})
    assert Endpoint.objects.values_list(
        "description", "max_in_flight", "rate_per_second", "in_order"
    ).get() == ("", 4, None, False)


@pytest.mark.parametrize("fields", [{"max_in_flight": 0}, {"rate_per_second": 0}])
def test_the_database_refuses_them_too(fields):
    EndpointFactory.create(url=URL)
    with pytest.raises(IntegrityError), transaction.atomic():
        Endpoint.objects.update(**fields)
