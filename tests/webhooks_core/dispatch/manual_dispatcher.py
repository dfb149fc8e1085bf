"""A dispatcher driven by hand: it claims and records for real, and its results are made up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from webhooks_core.database.clock import clock
from webhooks_core.dispatch import leases
from webhooks_core.dispatch.claims import OpenClaims
from webhooks_core.dispatch.queues import LeasedQueues
from webhooks_core.dispatch.results import RecordedResult, record_batch
from webhooks_core.models import DispatcherLease
from webhooks_core.network.connectivity import WINDOW, Connectivity
from webhooks_core.network.outcomes import Outcome
from webhooks_core.network.transport import AttemptResult, OutgoingRequest
from webhooks_core.upkeep.stats import has_arrived_since


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


def late_connection(request: OutgoingRequest) -> AttemptResult:
    duration_ms = int(request.timeout_s * 1000)
    return _result(request, Outcome.CONNECT, duration_ms=duration_ms)


def unreached(request: OutgoingRequest) -> AttemptResult:
    return _result(request, Outcome.DNS, error="the host name could not be resolved")


def untried(request: OutgoingRequest) -> AttemptResult:
    return _result(request, None)


class ManualDispatcher:
    def __init__(self) -> None:
        lease = leases.acquire()
        assert lease is not None
        self.lease: DispatcherLease = lease
        self.queues = LeasedQueues(lease)
        self.connectivity = Connectivity(lease.offline_since)
        self.claims = OpenClaims(lease, self.queues, self.connectivity)

    def claim(self) -> list[OutgoingRequest]:
        """Lease what is due and claim from it; return the requests to be made."""
        now = clock.now()
        self.queues.lease_due(now)
        return self.claims.claim_due(now)

    def claim_alone(self) -> list[OutgoingRequest]:
        """Claim as `claim`, but if only suspects are due, one of them."""
        return self.claim() or self.claim_suspect()

    def claim_suspect(self) -> list[OutgoingRequest]:
        """Claim a suspect that `claim` has noted, as at the end of a run."""
        assert not self.claims
        return self.claims.claim_suspect(clock.now())

    def record(self, results: Sequence[AttemptResult]) -> list[RecordedResult]:
        """Record results as the dispatcher does, but let every error through."""
        ended = [(self.claims.pop(result.key), result) for result in results]
        now = clock.now()
        recorded = record_batch(self.lease, ended, now=now).results
        for entry in recorded:
            if entry.retry_at:
                self.queues[entry.result.queue].scheduled(entry.retry_at)
        for claim, result in ended:
            if result.outcome is None:
                self.queues[result.queue].scheduled(now)
            owner, url = claim.endpoint.owner, claim.endpoint.url
            if self.connectivity.record(owner, url, result.outcome, now):
                self.restore_network()
        self.watch_network()
        return recorded

    def watch_network(self) -> None:
        """Mark the network as lost if every attempt failed, as the dispatcher does."""
        now = clock.now()
        if not self.connectivity.is_suspect(now):
            return
        if has_arrived_since(now - WINDOW):
            self.connectivity.mark_online()
        else:
            self.connectivity.mark_offline(now)
            leases.set_offline_since(self.lease, now)

    def restore_network(self) -> None:
        self.connectivity.mark_online()
        leases.set_offline_since(self.lease, None)

    def leave(self) -> None:
        """Release the queues without open claims, and the lease."""
        self.queues.forget_suspects(clock.now())
        self.queues.release(queue.pk for queue in self.queues.idle())
        leases.release(self.lease, attempts=0)
