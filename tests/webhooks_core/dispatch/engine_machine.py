"""The engine as a state machine: what products, workers and the world may do to it."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import transaction
from django.utils import timezone
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.webhooks_core.dispatch.invariants import Books
from tests.webhooks_core.dispatch.manual_dispatcher import (
    ManualDispatcher,
    failed,
    ok,
    timed_out,
    unreached,
    untried,
)
from tests.webhooks_core.making import endpoint, event
from webhooks_core import endpoints
from webhooks_core.dispatch import leases, rate_limit
from webhooks_core.dispatch.results import RecordedResult
from webhooks_core.dispatch.sweep import sweep
from webhooks_core.models import Attempt, Delivery, DispatcherLease, Endpoint
from webhooks_core.network.transport import OutgoingRequest
from webhooks_core.worker import notify

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
LIMIT = 3  # failures in a row, of the plain profile
ANSWERS = {
    "ok": ok,
    "failed": failed,
    "timed out": timed_out,
    "unreached": unreached,
    "untried": untried,
}
OWNERS = ("alice", "bob")
SECOND = timedelta(seconds=1)
RATES = [None, None, 1, 2]
# Those that let events flow are there twice: a search among silent endpoints finds nothing.
CHANGES = [
    "pause",
    "resume",
    "resume",
    "switch off",
    "switch on",
    "switch on",
    "delete",
]
picks = st.integers(0, 99)


class Worker:
    """A dispatcher, and the requests that it has made and not heard of."""

    def __init__(self) -> None:
        self.dispatcher = ManualDispatcher()
        self.open: list[OutgoingRequest] = []


class Engine(Books):
    """The tables of the engine, worked on by several shifts at once."""

    @initialize(
        in_flight=st.integers(1, 3), rate=st.sampled_from(RATES), in_order=st.booleans()
    )
    def begin(self, in_flight: int, rate: int | None, in_order: bool) -> None:
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.clock = time_machine.travel(START, tick=False)
        self.traveller = self.clock.start()
        self.workers: list[Worker] = []
        self.claims: dict[int, list[datetime]] = defaultdict(list)
        self.add(in_flight)
        self.add(in_flight, rate_per_second=rate, in_order=in_order)
        self.start()
        self.publish(call_is_lost=False, count=2)

    def teardown(self) -> None:
        if not hasattr(self, "atomic"):
            return
        try:
            self.finish()
            self.check_all()
        finally:
            self.clock.stop()
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)

    # What a product does.

    def add(self, in_flight: int = 2, **limits: Any) -> None:
        number = len(self.counters)
        made = endpoint(
            f"http://{number}.example/hook",
            owner=OWNERS[number % 2],
            max_in_flight=in_flight,
            **limits,
        )
        self.counters[made.pk] = (1, 0)

    @rule()
    def create_endpoint(self) -> None:
        if len(self.counters) < 4:
            self.add()

    @rule(call_is_lost=st.booleans(), count=st.integers(1, 3))
    def publish(self, call_is_lost: bool, count: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if call_is_lost:
                patch.setattr(notify, "notify", lambda *_, **__: None)
            for _ in range(count):
                for owner in OWNERS:
                    event(owner)
                self.expected += Endpoint.objects.subscribed().count()

    def endpoint(self, pick: int) -> Endpoint:
        pks = list(self.counters)
        return Endpoint.objects.get(pk=pks[pick % len(pks)])

    @rule(pick=picks, number=st.integers(0, 1))
    def change_url(self, pick: int, number: int) -> None:
        target = self.endpoint(pick)
        endpoints.update(target, url=f"http://{target.pk}.example/{number}")
        changed = not target.url.endswith(f"/{number}")
        if changed and self.counters[target.pk][0] == Endpoint.Status.DISABLED:
            self.counters[target.pk] = (1, 0)

    @rule(
        pick=picks,
        in_flight=st.integers(1, 3),
        rate=st.sampled_from(RATES),
        in_order=st.booleans(),
    )
    def limit(
        self, pick: int, in_flight: int, rate: int | None, in_order: bool
    ) -> None:
        target = self.endpoint(pick)
        endpoints.update(
            target, max_in_flight=in_flight, rate_per_second=rate, in_order=in_order
        )
        # What was claimed while there was no rate does not count against a new one.
        self.claims[target.pk].clear()

    @rule(pick=picks, how=st.sampled_from(CHANGES))
    def change_endpoint(self, pick: int, how: str) -> None:
        target = self.endpoint(pick)
        match how:
            case "pause":
                endpoints.pause(target)
            case "resume":
                endpoints.resume(target)
            case "delete":
                endpoints.delete(target)
            case _:
                endpoints.update(target, active=how == "switch on")

    # What the workers do.

    @precondition(lambda self: len(self.workers) < 3)
    @rule()
    def start(self) -> None:
        with suppress(AssertionError):  # every slot may be taken by one that just died
            self.workers.append(Worker())

    @precondition(lambda self: self.workers)
    @rule(pick=picks)
    def claim(self, pick: int) -> None:
        self.look(self.worker(pick))

    def look(self, worker: Worker) -> None:
        """Claim what is due, also for one that was buried and does not know it."""
        buried, offline = self.is_buried(worker), worker.dispatcher.network.is_offline
        try:
            claimed = worker.dispatcher.claim()
        except leases.LeaseLostError:
            assert buried
            self.settle(worker, [ok(it) for it in worker.open])
            self.workers.remove(worker)
        else:
            assert not (buried and claimed)
            # Without a network none but the one of every ten minutes is tried.
            assert not offline or len(claimed) <= 1
            worker.open += claimed
            self.check_limits(claimed)

    def check_limits(self, claimed: list[OutgoingRequest]) -> None:
        now = timezone.now()
        for pk in {request.queue for request in claimed}:
            mine = [request.key for request in claimed if request.queue == pk]
            target = Endpoint.objects.get(pk=pk)
            recent = [at for at in self.claims[pk] if now - SECOND < at]
            self.claims[pk] = [*recent, *[now] * len(mine)]
            if rate := target.rate_per_second:
                assert len(self.claims[pk]) <= rate
            if target.in_order:
                pending = Delivery.objects.filter(endpoint=pk, status=0)
                first = pending.order_by("event", "pk").first()
                assert first is not None
                assert mine == [first.pk]
                assert pending.exclude(claimed_by=None).count() == 1

    @precondition(lambda self: self.workers)
    @rule(pick=picks)
    def lose_network(self, pick: int) -> None:
        """A minute in which nothing arrives, then a look that reaches nobody."""
        worker = self.worker(pick)
        self.traveller.shift(61)
        for other in self.workers:
            leases.renew(other.dispatcher.shift)
        self.publish(call_is_lost=False, count=1)
        self.look(worker)
        self.settle(worker, [unreached(it) for it in worker.open])

    @precondition(lambda self: self.workers)
    @rule(pick=picks)
    def find_network(self, pick: int) -> None:
        self.worker(pick).dispatcher.find_network()

    @precondition(lambda self: any(it.open for it in self.workers))
    @rule(pick=picks, how=st.lists(st.sampled_from(sorted(ANSWERS)), max_size=5))
    def answer(self, pick: int, how: list[str]) -> None:
        busy = [it for it in self.workers if it.open]
        worker = busy[pick % len(busy)]
        self.settle(
            worker,
            [
                ANSWERS[it](request)
                for it, request in zip(how, worker.open, strict=False)
            ],
        )

    @precondition(lambda self: self.workers)
    @rule(pick=picks)
    def renew(self, pick: int) -> None:
        worker = self.worker(pick)
        buried = self.is_buried(worker)
        assert leases.renew(worker.dispatcher.shift) != buried

    @precondition(lambda self: self.workers)
    @rule(pick=picks, at_once=st.booleans())
    def stall(self, pick: int, at_once: bool) -> None:
        """Sleep through the lease: the others go on, bury it, and it comes back."""
        stalled = self.worker(pick)
        self.traveller.shift(20)
        for other in self.workers:
            if other is not stalled:
                leases.renew(other.dispatcher.shift)
        sweep()
        self.publish(call_is_lost=False, count=1)
        if at_once:
            self.look(stalled)

    @precondition(lambda self: self.workers)
    @rule(pick=picks)
    def die(self, pick: int) -> None:
        self.workers.remove(self.worker(pick))

    @precondition(lambda self: self.workers)
    @rule(pick=picks)
    def leave(self, pick: int) -> None:
        """In order when nothing is open, and in a hurry otherwise."""
        worker = self.worker(pick)
        self.workers.remove(worker)
        worker.dispatcher.leave()

    @rule()
    def sweep(self) -> None:
        sweep()

    @rule(seconds=st.sampled_from([0.4, 1, 6, 16, 61, 301, 3600, -1, -20, -61, -3600]))
    def pass_time(self, seconds: float) -> None:
        self.traveller.shift(seconds)
        if seconds < 0:
            self.claims.clear()  # by this clock nobody could tell

    def worker(self, pick: int) -> Worker:
        return self.workers[pick % len(self.workers)]

    def is_buried(self, worker: Worker) -> bool:
        shift = DispatcherLease.objects.get(pk=worker.dispatcher.shift.pk)
        return shift.ended_at is not None

    def settle(self, worker: Worker, answers: list[Any]) -> None:
        buried = self.is_buried(worker)
        settled = worker.dispatcher.settle(answers)
        assert not (buried and settled)
        ended = {it.key for it in answers}
        worker.open = [it for it in worker.open if it.key not in ended]
        for it in settled:
            self.count(it)

    def count(self, it: RecordedResult) -> None:
        pk = it.claim.endpoint.pk
        status, count = self.counters[pk]
        count = 0 if it.verdict.delivered else count + 1
        self.counters[pk] = (2 if count >= LIMIT else status, count)

    def is_held(self, worker: Worker) -> bool:
        now = timezone.now()
        lanes = worker.dispatcher.lanes.values()
        return any(
            it.next_check_at
            and it.next_check_at <= now
            and rate_limit.is_held(it.not_before, now)
            for it in lanes
        )

    def finish(self) -> None:
        """Everybody dies. One who comes after must find all that waits, and end it."""
        for _ in range(10):
            waiting = Delivery.objects.filter(status=Delivery.Status.PENDING)
            last = waiting.order_by("-next_attempt_at").first()
            if last is None or last.next_attempt_at is None:
                break
            later = max(timezone.now(), last.next_attempt_at) + timedelta(seconds=40)
            self.traveller.move_to(later)
            sweep()
            DispatcherLease.objects.update(offline_since=None)
            worker = Worker()
            while (claimed := worker.dispatcher.claim()) or self.is_held(worker):
                self.check_limits(claimed)
                self.settle(worker, [ok(it) for it in claimed])
                if not claimed:
                    self.traveller.shift(1)
                    leases.renew(worker.dispatcher.shift)
            worker.dispatcher.leave()
        stuck = Delivery.objects.filter(status=Delivery.Status.PENDING)
        assert not stuck.filter(endpoint__in=Endpoint.objects.receiving()).exists()
        assert not stuck.filter(endpoint__deleted_at__isnull=False).exists()
        assert not stuck.filter(claimed_by__isnull=False).exists()
        # Each was ended by as many attempts as there are rows for it, none invented.
        assert Attempt.objects.filter(delivery__status=0, outcome="ok").count() == 0
