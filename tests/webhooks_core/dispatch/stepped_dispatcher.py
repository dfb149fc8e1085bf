"""The real dispatcher, one round at a time, with a sender whose answers are made up."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from webhooks_core.dispatch import dispatcher, leases
from webhooks_core.dispatch.dispatcher import Dispatcher
from webhooks_core.models import DispatcherLease
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.errors import Outcome
from webhooks_core.network.transport import AttemptResult, OutgoingRequest

Answer = Callable[[OutgoingRequest], AttemptResult]


def _result(
    request: OutgoingRequest, outcome: Outcome | None, code: int | None = None, **fields
) -> AttemptResult:
    now = datetime.now(UTC)
    return AttemptResult(request.key, request.queue, now, outcome, code, **fields)


def ok(request: OutgoingRequest) -> AttemptResult:
    return _result(request, Outcome.OK, 204)


def failed(
    request: OutgoingRequest, code: int = 500, retry_after: float | None = None
) -> AttemptResult:
    error = f"HTTP {code}"
    return _result(request, Outcome.HTTP, code, error=error, retry_after=retry_after)


def timed_out(request: OutgoingRequest) -> AttemptResult:
    return _result(request, Outcome.TIMEOUT, error="no answer within 1 s")


def unreached(request: OutgoingRequest) -> AttemptResult:
    return _result(request, Outcome.DNS, error="the host name could not be resolved")


def untried(request: OutgoingRequest) -> AttemptResult:
    return _result(request, None)


class DiedError(Exception):
    """The process of a dispatcher has died."""


def died(_: OutgoingRequest) -> AttemptResult:
    """End the run in the middle; its lease is released as an expired one is."""
    raise DiedError


class MonotonicClock:
    """What the dispatcher's module `time` is in a test: it stands still until it is moved."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        stand_in = SimpleNamespace(monotonic=lambda: self.now, sleep=self.move)
        patch.setattr(dispatcher, "time", stand_in)

    def move(self, seconds: float) -> None:
        self.now += max(seconds, 0)


class FakeSender:
    """Keeps what is submitted open until it is answered; `answer_all_with` answers at once."""

    def __init__(self, on_submit: Callable[[list[OutgoingRequest]], None]) -> None:
        self.open: list[OutgoingRequest] = []
        self.answer_all_with: Answer | None = None
        self.is_reached = False
        self._on_submit = on_submit
        self._results: list[AttemptResult] = []

    def answer(self, request: OutgoingRequest, answer: Answer) -> None:
        self.open.remove(request)
        self._results.append(answer(request))

    # As Sender.

    def submit(self, requests: Sequence[OutgoingRequest]) -> None:
        self.open += requests
        if requests:
            self._on_submit(list(requests))

    def collect(self, *, wait_s: float) -> list[AttemptResult]:
        if self.answer_all_with is not None:
            for request in list(self.open):
                self.answer(request, self.answer_all_with)
        results, self._results = self._results, []
        return results

    def stop(self) -> None:
        """Give back what has not started: all but the first request of each queue."""
        for pk in {request.queue for request in self.open}:
            for request in [each for each in self.open if each.queue == pk][1:]:
                self.answer(request, untried)

    def probe(self, url: str, networks: AllowedNetworks) -> None:
        """Reach nothing: `is_reached` decides."""

    def has_reached(self) -> bool:
        reached, self.is_reached = self.is_reached, False
        return reached


class SteppedDispatcher:
    """A dispatcher that works when it is told to, and waits for nothing.

    `on_submit` sees each batch of requests when it is submitted.
    """

    def __init__(
        self,
        on_submit: Callable[
            ["SteppedDispatcher", list[OutgoingRequest]], None
        ] = lambda *_: None,
    ) -> None:
        lease = leases.acquire()
        assert lease is not None
        self.lease: DispatcherLease = lease
        self.is_stopped = False
        self._is_running = self._has_waited = False
        self._on_submit = on_submit
        self._submitted: list[OutgoingRequest] = []
        self.sender = FakeSender(self._submit)
        listener: Any = SimpleNamespace(wait=self._wait)
        sender: Any = self.sender
        self._dispatcher = Dispatcher(
            lease, sender, listener, self._stop, timedelta(0), False
        )

    def _submit(self, requests: list[OutgoingRequest]) -> None:
        self._submitted += requests
        self._on_submit(self, requests)

    def _wait(self) -> None:
        self._has_waited = not self._is_running

    def _stop(self) -> bool:
        return self.is_stopped or self._has_waited

    @property
    def open(self) -> list[OutgoingRequest]:
        return self.sender.open

    @property
    def is_expired(self) -> bool:
        return not DispatcherLease.objects.filter(pk=self.lease.pk).exists()

    @property
    def is_offline(self) -> bool:
        return self._dispatcher._connectivity.is_offline

    def work(self) -> bool:
        """Do one round; return False if it would end now. Raises LeaseLostError."""
        self._has_waited = False
        self._dispatcher.work()
        self._has_waited = False
        return not self._dispatcher._is_stopping()

    def claim(self) -> list[OutgoingRequest]:
        """Do a round; return what has been submitted since the last call."""
        self.work()
        submitted, self._submitted = self._submitted, []
        return submitted

    def record(self, requests: Sequence[OutgoingRequest], *answers: Answer) -> None:
        """Answer requests, all with the last answers, and do two rounds, which write the results."""
        for number, request in enumerate(requests):
            self.sender.answer(request, answers[min(number, len(answers) - 1)])
        self.work()
        self.work()

    def attempt(self, *answers: Answer) -> list[OutgoingRequest]:
        """Claim what is due and answer it; return the requests."""
        requests = self.claim()
        self.record(requests, *answers)
        return requests

    def run(self, answer: Answer) -> None:
        """Do a whole run: all that is due gets this answer."""
        self._is_running, self.sender.answer_all_with = True, answer
        self._dispatcher.run()

    def finish(self, answer: Answer = untried) -> None:
        """End as when the cluster stops; what is open gets this answer."""
        self.is_stopped, self.sender.answer_all_with = True, answer
        self._dispatcher.run()
