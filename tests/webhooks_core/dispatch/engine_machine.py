"""The engine as a state machine: what products, dispatchers and the world may do to it."""

from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.clock import travel
from tests.webhooks_core.dispatch.invariants import Invariants
from tests.webhooks_core.dispatch.stepped_dispatcher import (
    MonotonicClock,
    SteppedDispatcher,
    failed,
    ok,
    timed_out,
    unreached,
    untried,
)
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core import endpoints
from webhooks_core.dispatch import claims, leases, notify, results
from webhooks_core.dispatch.leases import SUSPECT_AFTER
from webhooks_core.dispatch.results import RecordedResult
from webhooks_core.models import Attempt, Delivery, DispatcherLease, Endpoint
from webhooks_core.network.transport import OutgoingRequest
from webhooks_core.upkeep.sweep import sweep

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
LIMIT = 5  # failures in a row; more than the time-outs of an endpoint that hangs
MAX_CLAIMED = 3  # so that owners compete
RESULTS = {
    "ok": ok,
    "failed": failed,
    "timed out": timed_out,
    "unreached": unreached,
    "untried": untried,
}
OWNERS = ("alice", "bob", "carol")
# Those that let events flow are there twice: a search among silent endpoints finds nothing.
CHANGES = ["disable", "switch off", "delete", *2 * ["enable", "switch on"]]
picks = st.integers(0, 99)
record_results = results.record_results


class Engine(Invariants):
    """The tables of the engine under several dispatchers at once."""

    @initialize(in_flight=st.integers(1, 3))
    def begin(self, in_flight: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(claims, "MAX_CLAIMED", MAX_CLAIMED)
        self.patch.setattr(results, "record_results", self.recorded)
        self.monotonic = MonotonicClock(self.patch)
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.clock = travel(START, tick=False)
        self.traveller = self.clock.__enter__()
        self.dispatchers: list[SteppedDispatcher] = []
        self.add(in_flight)
        self.add(in_flight)
        self.start()
        self.publish(is_notification_lost=False, count=2)

    def teardown(self) -> None:
        if not hasattr(self, "atomic"):
            return
        try:
            self.finish()
            self.check_all()
        finally:
            self.patch.undo()
            self.clock.__exit__(None, None, None)
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)

    # What a product does.

    def add(self, in_flight: int = 2) -> None:
        number = len(self.counters)
        created = EndpointFactory.create(
            url=f"http://{number}.example/hook",
            owner=OWNERS[number % len(OWNERS)],
            max_in_flight=in_flight,
        )
        self.counters[created.pk] = (1, 0)

    @rule()
    def create_endpoint(self) -> None:
        if len(self.counters) < 5:
            self.add()

    @rule(is_notification_lost=st.booleans(), count=st.integers(1, 3))
    def publish(self, is_notification_lost: bool, count: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if is_notification_lost:
                patch.setattr(notify, "notify", lambda *_, **__: None)
            for _ in range(count):
                for owner in OWNERS:
                    publish_event(owner)
                self.expected += Endpoint.objects.receiving().count()

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

    @rule(pick=picks, in_flight=st.integers(1, 3))
    def limit(self, pick: int, in_flight: int) -> None:
        endpoints.update(self.endpoint(pick), max_in_flight=in_flight)

    @rule(pick=picks, how=st.sampled_from(CHANGES))
    def change_endpoint(self, pick: int, how: str) -> None:
        target = self.endpoint(pick)
        match how:
            case "disable":
                endpoints.update(target, status=Endpoint.Status.DISABLED)
                _, count = self.counters[target.pk]
                self.counters[target.pk] = (Endpoint.Status.DISABLED, count)
            case "enable":
                endpoints.update(target, status=Endpoint.Status.ACTIVE)
                if self.counters[target.pk][0] == Endpoint.Status.DISABLED:
                    self.counters[target.pk] = (Endpoint.Status.ACTIVE, 0)
            case "delete":
                endpoints.delete(target)
            case _:
                endpoints.update(target, active=how == "switch on")

    # What the dispatchers do.

    @precondition(lambda self: len(self.dispatchers) < 3)
    @rule()
    def start(self) -> None:
        with suppress(AssertionError):  # every slot may be taken by one that just died
            self.dispatchers.append(SteppedDispatcher(self.check_claims))

    @precondition(lambda self: self.dispatchers)
    @rule(pick=picks)
    def claim(self, pick: int) -> None:
        self.look(self.dispatcher(pick))

    def look(self, dispatcher: SteppedDispatcher) -> None:
        """Do a round, also with a lease that has expired unnoticed."""
        try:
            if not dispatcher.work():
                self.end(dispatcher, ok)
        except leases.LeaseLostError:
            assert dispatcher.is_expired
            self.dispatchers.remove(dispatcher)

    def end(self, dispatcher: SteppedDispatcher, answer: Any) -> None:
        self.dispatchers.remove(dispatcher)
        dispatcher.finish(answer)
        assert dispatcher.is_expired

    def check_claims(
        self, dispatcher: SteppedDispatcher, claimed: list[OutgoingRequest]
    ) -> None:
        """Check what was claimed, before anything else happens."""
        assert not dispatcher.is_expired
        assert not dispatcher.is_stopped
        # Without a network only the trial of every ten minutes is made.
        assert not dispatcher.is_offline or len(claimed) <= 1
        self.check_limits(dispatcher, claimed)
        self.check_shares(dispatcher, claimed)
        mine = Delivery.objects.claimed_by(dispatcher.lease.pk)
        suspects = mine.filter(interruptions__gte=SUSPECT_AFTER)
        assert (
            suspects.filter(pk__in=[each.key for each in dispatcher.open]).count() < 2
        )

    def check_shares(
        self, dispatcher: SteppedDispatcher, claimed: list[OutgoingRequest]
    ) -> None:
        held = Counter(request.owner for request in dispatcher.open)
        assert held.total() <= MAX_CLAIMED + 1
        several = len({request.owner for request in claimed}) > 1
        for owner in {request.owner for request in claimed}:
            assert held[owner] <= (1 if several else MAX_CLAIMED)

    def shift(self, seconds: float) -> None:
        self.traveller.shift(seconds)
        self.monotonic.move(seconds)

    @precondition(lambda self: any(dispatcher.open for dispatcher in self.dispatchers))
    @rule(pick=picks)
    def crash(self, pick: int) -> None:
        """Die with requests in flight, which is known at once."""
        dispatcher = self.dispatcher(pick, is_busy=True)
        self.dispatchers.remove(dispatcher)
        over = timezone.now() - timedelta(seconds=1)
        DispatcherLease.objects.filter(pk=dispatcher.lease.pk).update(expires_at=over)
        sweep()

    def check_limits(
        self, dispatcher: SteppedDispatcher, claimed: list[OutgoingRequest]
    ) -> None:
        open_of = Counter(request.queue for request in dispatcher.open)
        for pk in {request.queue for request in claimed}:
            if Endpoint.objects.get(pk=pk).is_hanging:
                assert open_of[pk] == 1

    @precondition(lambda self: self.dispatchers)
    @rule(pick=picks)
    def lose_network(self, pick: int) -> None:
        """A minute in which nothing arrives, then claims whose requests reach no receiver."""
        dispatcher = self.dispatcher(pick)
        self.shift(61)
        self.renew_all(self.dispatchers)
        self.publish(is_notification_lost=False, count=1)
        self.look(dispatcher)
        self.answer_all(dispatcher, unreached)

    @precondition(lambda self: self.dispatchers)
    @rule(pick=picks)
    def restore_network(self, pick: int) -> None:
        dispatcher = self.dispatcher(pick)
        dispatcher.sender.is_reached = True
        self.look(dispatcher)

    @precondition(lambda self: any(dispatcher.open for dispatcher in self.dispatchers))
    @rule(pick=picks, kinds=st.lists(st.sampled_from(sorted(RESULTS)), max_size=5))
    def answer(self, pick: int, kinds: list[str]) -> None:
        dispatcher = self.dispatcher(pick, is_busy=True)
        for kind, request in zip(kinds, list(dispatcher.open), strict=False):
            dispatcher.sender.answer(request, RESULTS[kind])
        self.look(dispatcher)

    @precondition(lambda self: any(dispatcher.open for dispatcher in self.dispatchers))
    @rule(pick=picks)
    def hang(self, pick: int) -> None:
        """Time out until an endpoint hangs."""
        dispatcher = self.dispatcher(pick, is_busy=True)
        for _ in range(3):
            self.answer_all(dispatcher, timed_out)
            if dispatcher not in self.dispatchers:
                return
            self.shift(6)
            self.publish(is_notification_lost=False, count=1)
            self.look(dispatcher)
            if dispatcher not in self.dispatchers:
                return

    @precondition(lambda self: self.dispatchers)
    @rule(pick=picks)
    def renew(self, pick: int) -> None:
        dispatcher = self.dispatcher(pick)
        if dispatcher.is_expired:
            with pytest.raises(leases.LeaseLostError):
                leases.renew(dispatcher.lease)
        else:
            leases.renew(dispatcher.lease)

    @precondition(lambda self: self.dispatchers)
    @rule(pick=picks, at_once=st.booleans())
    def stall(self, pick: int, at_once: bool) -> None:
        """Sleep longer than the lease: the others expire it, and it comes back."""
        stalled = self.dispatcher(pick)
        self.shift(20)
        self.renew_all([each for each in self.dispatchers if each is not stalled])
        sweep()
        self.publish(is_notification_lost=False, count=1)
        if at_once:
            self.look(stalled)

    @precondition(lambda self: self.dispatchers)
    @rule(pick=picks)
    def die(self, pick: int) -> None:
        self.dispatchers.remove(self.dispatcher(pick))

    @precondition(lambda self: self.dispatchers)
    @rule(pick=picks, kind=st.sampled_from(sorted(RESULTS.keys() - {"untried"})))
    def leave(self, pick: int, kind: str) -> None:
        """With or without open claims."""
        self.end(self.dispatcher(pick), RESULTS[kind])

    @rule()
    def sweep(self) -> None:
        sweep()

    def renew_all(self, dispatchers: list[SteppedDispatcher]) -> None:
        for dispatcher in dispatchers:
            with suppress(leases.LeaseLostError):
                leases.renew(dispatcher.lease)

    @rule(seconds=st.sampled_from([0.4, 1, 6, 16, 61, 301, 3600]))
    def pass_time(self, seconds: float) -> None:
        self.shift(seconds)

    def dispatcher(self, pick: int, *, is_busy: bool = False) -> SteppedDispatcher:
        those = [each for each in self.dispatchers if each.open or not is_busy]
        return those[pick % len(those)]

    def answer_all(self, dispatcher: SteppedDispatcher, answer: Any) -> None:
        """Answer what is open; the next round records it."""
        for request in list(dispatcher.open):
            dispatcher.sender.answer(request, answer)
        for _ in range(2):
            if dispatcher in self.dispatchers:
                self.look(dispatcher)

    def recorded(self, *arguments: Any, **options: Any) -> Any:
        """Record for real, and count what was recorded."""
        written = record_results(*arguments, **options)
        for entry in written[0]:
            self.count(entry)
        return written

    def count(self, entry: RecordedResult) -> None:
        pk = entry.claim.endpoint.pk
        status, count = self.counters[pk]
        count = 0 if entry.is_delivered else count + 1
        self.counters[pk] = (2 if count >= LIMIT else status, count)

    def finish(self) -> None:
        """All dispatchers die. The next one must find and end all that waits."""
        for _ in range(10):
            pending = Delivery.objects.pending()
            last = pending.order_by("-next_attempt_at").first()
            if last is None or last.next_attempt_at is None:
                break
            later = max(timezone.now(), last.next_attempt_at) + timedelta(seconds=40)
            self.traveller.move_to(later)
            self.monotonic.move(40)
            sweep()
            dispatcher = SteppedDispatcher(self.check_claims)
            dispatcher.sender.answer_all_with = ok
            for _ in range(100):
                if not dispatcher.work():
                    break
                self.shift(1)
            dispatcher.finish(ok)
        stuck = Delivery.objects.pending()
        assert not stuck.filter(endpoint__in=Endpoint.objects.receiving()).exists()
        assert not stuck.filter(endpoint__deleted_at__isnull=False).exists()
        assert not stuck.filter(claimed_by__isnull=False).exists()
        # A pending delivery has no attempt that succeeded.
        assert Attempt.objects.filter(delivery__status=0, outcome="ok").count() == 0
