"""What may be claimed while results wait to be written: a dispatcher claims first, and then writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from datetime import timedelta
from typing import cast

import pytest

from tests.webhooks_core.dispatch.manual_dispatcher import ManualDispatcher, failed, ok
from tests.webhooks_core.factories import EndpointFactory, publish_events
from webhooks_core.dispatch import leases
from webhooks_core.dispatch.dispatcher import Dispatcher
from webhooks_core.dispatch.results import ResultRecorder
from webhooks_core.dispatch.sender import Sender
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.network.transport import AttemptResult, OutgoingRequest
from webhooks_core.worker.listener import Listener

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


class Unhurried(ManualDispatcher):
    """Receives results, and writes them only when the test calls record()."""

    def __init__(self) -> None:
        super().__init__()
        self.recorder = ResultRecorder(
            self.lease, self.queues, self.claims, self.connectivity
        )


def test_the_next_requests_are_claimed_before_successes_are_written():
    EndpointFactory.create(max_in_flight=1)
    publish_events(6)
    dispatcher = Unhurried()
    first = dispatcher.claim()
    dispatcher.recorder.receive([ok(request) for request in first])
    second = dispatcher.claim()
    assert (len(first), len(second)) == (2, 4)  # the window has doubled
    assert not {request.key for request in first} & {request.key for request in second}
    assert dispatcher.recorder.record()
    assert Delivery.objects.filter(status=Delivery.Status.DELIVERED).count() == 2


def test_nothing_is_claimed_before_a_failure_is_written():
    EndpointFactory.create(max_in_flight=1)
    publish_events(6)
    dispatcher = Unhurried()
    requests = dispatcher.claim()
    dispatcher.recorder.receive([failed(request) for request in requests])
    assert dispatcher.claim() == []
    dispatcher.recorder.record()
    assert len(dispatcher.claim()) == 2


@pytest.mark.parametrize("limit", [{"in_order": True}, {"rate_per_second": 100}])
def test_a_queue_that_claims_exactly_waits_for_every_result(limit):
    EndpointFactory.create(max_in_flight=1, **limit)
    publish_events(3)
    dispatcher = Unhurried()
    [first] = dispatcher.claim()
    dispatcher.recorder.receive([ok(first)])
    assert dispatcher.claim() == []
    dispatcher.recorder.record()
    assert len(dispatcher.claim()) == 1


def test_a_result_from_before_an_endpoint_became_strict_is_written_first():
    endpoint = EndpointFactory.create(max_in_flight=1)
    publish_events(6)
    dispatcher = Unhurried()
    dispatcher.recorder.receive([ok(request) for request in dispatcher.claim()])
    Endpoint.objects.filter(pk=endpoint.pk).update(in_order=True)
    assert dispatcher.claim() == []
    dispatcher.recorder.record()
    assert len(dispatcher.claim()) == 1


class OneByOne:
    """A sender whose requests end one at a time, the oldest first; each is refused or accepted."""

    def __init__(self, end: Callable[[OutgoingRequest], AttemptResult]) -> None:
        self.requests: deque[OutgoingRequest] = deque()
        self.claimed: list[int] = []
        self._end = end

    def submit(self, requests: Sequence[OutgoingRequest]) -> None:
        self.requests += requests
        self.claimed.append(len(requests))

    def collect(self, *, wait_s: float) -> list[AttemptResult]:
        return [self._end(self.requests.popleft())] if self.requests else []

    def mark_reached(self) -> None:
        """Nothing waits for this."""

    def release_waiting(self, pks: Collection[int]) -> None:
        """No queue is stopped here."""
        assert not pks


@pytest.mark.parametrize(
    ("limits", "end"),
    [({"rate_per_second": 10_000}, ok), ({"in_order": True}, ok), ({}, failed)],
)
def test_a_queue_claims_more_after_each_result_that_it_waits_for(
    use_profile, limits, end
):
    use_profile(disable_after=None)
    EndpointFactory.create(max_in_flight=4, **limits)
    publish_events(40)
    lease = leases.acquire()
    assert lease is not None
    sender = OneByOne(end)
    with closing(Listener()) as listener:
        dispatcher = Dispatcher(
            lease,
            cast("Sender", sender),
            listener,
            stop=lambda: False,
            linger=timedelta(0),
            is_resident=False,
        )
        for _ in range(12):
            dispatcher.work()
    first, *others = sender.claimed
    # A window of which more than half is left claims nothing, unless it claims exactly.
    assert sum(others) >= 8
    assert max(others) <= max(first // 2, 1)


def test_a_queue_with_unwritten_results_is_not_released():
    EndpointFactory.create()
    publish_events(1)
    dispatcher = Unhurried()
    dispatcher.recorder.receive([ok(request) for request in dispatcher.claim()])
    assert dispatcher.queues.idle() == []
    dispatcher.recorder.record()
    assert len(dispatcher.queues.idle()) == 1
