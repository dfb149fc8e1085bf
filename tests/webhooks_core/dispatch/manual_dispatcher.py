"""A shift driven by hand: it claims and settles for real, and its answers are made up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from django.utils import timezone

from webhooks_core.dispatch import leases
from webhooks_core.dispatch.claims import Claim, OpenClaims
from webhooks_core.dispatch.connectivity import WINDOW, Connectivity
from webhooks_core.dispatch.queues import LeasedQueues
from webhooks_core.dispatch.results import RecordedResult, settle
from webhooks_core.models import DispatcherLease
from webhooks_core.network.transport import AttemptResult, OutgoingRequest
from webhooks_core.outcomes import Outcome
from webhooks_core.stats import has_arrived_since


def ok(request: OutgoingRequest) -> AttemptResult:
    return AttemptResult(request.key, request.queue, datetime.now(UTC), Outcome.OK, 204)


def failed(
    request: OutgoingRequest, code: int = 500, retry_after: float | None = None
) -> AttemptResult:
    return AttemptResult(
        request.key,
        request.queue,
        datetime.now(UTC),
        Outcome.HTTP,
        code,
        error=f"HTTP {code}",
        retry_after=retry_after,
    )


def timed_out(request: OutgoingRequest) -> AttemptResult:
    return AttemptResult(
        request.key,
        request.queue,
        datetime.now(UTC),
        Outcome.TIMEOUT,
        error="no answer within 1 s",
    )


def unreached(request: OutgoingRequest) -> AttemptResult:
    return AttemptResult(
        request.key,
        request.queue,
        datetime.now(UTC),
        Outcome.DNS,
        error="the host name could not be resolved",
    )


def untried(request: OutgoingRequest) -> AttemptResult:
    return AttemptResult(request.key, request.queue, datetime.now(UTC), None)


class ManualDispatcher:
    def __init__(self) -> None:
        shift = leases.acquire()
        assert shift is not None
        self.shift: DispatcherLease = shift
        self.lanes = LeasedQueues(shift)
        self.network = Connectivity(shift.offline_since)
        self.claims = OpenClaims(shift, self.lanes, self.network)

    def claim(self) -> list[OutgoingRequest]:
        """Lease what is due and claim from it; return the requests to be made."""
        now = timezone.now()
        self.lanes.lease_due(now)
        return self.claims.claim_due(now)

    def settle(self, answers: Sequence[AttemptResult]) -> list[RecordedResult]:
        ended: list[tuple[Claim, AttemptResult]] = [
            (self.claims.pop(answer.key), answer) for answer in answers
        ]
        now = timezone.now()
        settled = settle(self.shift, ended, now=now)
        for it in settled:
            if it.retry_at:
                self.lanes[it.answer.lane].schedule(it.retry_at)
        for claim, answer in ended:
            if answer.outcome is None:
                self.lanes[answer.lane].schedule(now)
            owner, url = claim.endpoint.owner, claim.endpoint.url
            if self.network.record(owner, url, answer.outcome, now):
                self.find_network()
        self.watch_network()
        return settled

    def watch_network(self) -> None:
        """Take the network for away when all that is known says so, as a drain does."""
        now = timezone.now()
        if not self.network.is_suspect(now):
            return
        if has_arrived_since(now - WINDOW):
            self.network.mark_online()
        else:
            self.network.mark_offline(now)
            leases.set_offline_since(self.shift, offline_since=now)

    def find_network(self) -> None:
        self.network.mark_online()
        leases.set_offline_since(self.shift, offline_since=None)

    def leave(self) -> None:
        """Release the lanes without open claims, and end the shift."""
        self.lanes.release(it.pk for it in self.lanes.values() if not it.claimed)
        leases.release(self.shift, attempts=0)
