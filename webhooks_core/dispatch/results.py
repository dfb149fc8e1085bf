"""Results of attempts become rows. Results with the same effect are one UPDATE."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import orjson
import structlog
from django.db import transaction

from webhooks_core import changes
from webhooks_core.database.clock import clock
from webhooks_core.dispatch import leases, sql
from webhooks_core.dispatch.claims import Claim, OpenClaims
from webhooks_core.dispatch.queues import LeasedQueues
from webhooks_core.dispatch.sql import AttemptRow
from webhooks_core.models import Delivery, DispatcherLease, Endpoint
from webhooks_core.network.connectivity import Connectivity
from webhooks_core.network.errors import Outcome
from webhooks_core.network.transport import AttemptResult
from webhooks_core.secrets import HIDDEN, EncryptedText

SECOND = timedelta(seconds=1)
EXCERPT = 200
# What a result may change of an endpoint.
COUNTED = (
    *("last_attempt_at", "last_success_at", "consecutive_failures", "timeouts"),
    *("failing_since", "failed_attempts", "alike_failures", "last_outcome"),
    *("last_error", "last_response", "status", "disabled_at", "enabled_at"),
)

log = structlog.stdlib.get_logger(__name__)

EndedAttempt = tuple[Claim, AttemptResult]


@dataclass(eq=False)
class ResultRecorder:
    """Receives the results of a dispatcher's attempts and writes them in batches.

    `unrecorded` keeps the results that are not written yet; `attempts` counts those that are.
    """

    lease: DispatcherLease
    queues: LeasedQueues
    claims: OpenClaims
    connectivity: Connectivity
    unrecorded: list[EndedAttempt] = field(default_factory=list)
    attempts: int = 0
    _reported: set[str] = field(default_factory=set, init=False)

    def receive(self, results: Iterable[AttemptResult]) -> None:
        """Take results. A success makes room in its queue at once, a failure when it is written."""
        now = clock.now()
        for result in results:
            claim = self.claims.pop(result.key)
            if result.outcome is None and result.error:
                self._tell_local_failure(result.error)
            self.unrecorded.append((claim, result))
            queue = self.queues[result.queue]
            queue.open -= result.outcome == Outcome.OK
            queue.adapt(result, claim.endpoint, now)
            outcome = result.outcome if result.proves_network else None
            self.connectivity.record(
                claim.endpoint.owner, claim.endpoint.url, outcome, now
            )

    def _tell_local_failure(self, lacking: str) -> None:
        """Log once which resource this machine lacks: the attempt will be made later."""
        if lacking not in self._reported:
            self._reported.add(lacking)
            log.error("attempts not possible", reason=lacking)

    def record(self) -> None:
        """Write the results that wait, and schedule what follows."""
        if not self.unrecorded:
            return
        now, ended = clock.now(), self.unrecorded
        recorded, self.unrecorded = record_results(self.lease, ended, now=now)
        later = {result.key for _, result in self.unrecorded}
        for _, result in ended:
            if result.outcome != Outcome.OK and result.key not in later:
                self._free_place(result, now)
        for entry in recorded:
            if entry.retry_at:
                self.queues[entry.result.queue].schedule(entry.retry_at)
        self.attempts += len(recorded)

    def _free_place(self, result: AttemptResult, now: datetime) -> None:
        queue = self.queues[result.queue]
        queue.open -= 1
        if result.outcome is None:
            if result.error:  # what this machine lacks now
                queue.next_check_at = now + SECOND
            else:
                queue.schedule(now)


class RecordedResult(NamedTuple):
    """A result and what it means; `retry_at` is when to try again, None for never."""

    claim: Claim
    result: AttemptResult
    is_delivered: bool
    retry_at: datetime | None

    @property
    def has_timed_out(self) -> bool:
        """Return True if the receiver held a slot for as long as it may."""
        timeout_ms = 1000 * self.claim.profile.timeout_s
        is_late = self.result.is_slow and self.result.duration_ms >= timeout_ms
        return is_late or self.result.outcome == Outcome.TIMEOUT


def record_results(
    lease: DispatcherLease, ended: Sequence[EndedAttempt], *, now: datetime
) -> tuple[list[RecordedResult], list[EndedAttempt]]:
    """Write the results of what this lease still claims; return them, and what is left for later.

    The lease is locked first, then endpoints are written before deliveries, as everywhere, so
    that no two writers deadlock. Results of endpoints that another transaction locks are left for
    later: those of other endpoints do not wait for its end. Raises LeaseLostError.
    """
    untried = [result.key for _, result in ended if result.outcome is None]
    with transaction.atomic():
        leases.lock(lease)
        claimed = _still_claimed(lease, ended)
        locked = Endpoint.objects.lock_free({result.queue for _, result in claimed})
        recorded = _decide_all(
            [attempt for attempt in claimed if attempt[1].queue in locked], now
        )
        _count(recorded, now)
        if untried:
            Delivery.objects.release(untried, lease=lease.pk)
        _update_deliveries(lease, recorded, now)
        _insert_attempts(lease, recorded)
    for entry in recorded:
        if not (entry.is_delivered or entry.retry_at):
            log.warning(
                "delivery failed",
                delivery=entry.claim.due.public_id,
                endpoint=entry.claim.endpoint.public_id,
                attempts=entry.claim.number,
                error=entry.result.error,
            )
    return recorded, [each for each in claimed if each[1].queue not in locked]


def _still_claimed(
    lease: DispatcherLease, ended: Sequence[EndedAttempt]
) -> list[EndedAttempt]:
    """Leave out what was not attempted, and what was recorded or freed before."""
    made = [attempt for attempt in ended if attempt[1].outcome is not None]
    pks = [result.key for _, result in made]
    claimed = Delivery.objects.still_claimed(pks, lease=lease.pk)
    return [attempt for attempt in made if attempt[1].key in claimed]


def _decide_all(ended: Iterable[EndedAttempt], now: datetime) -> list[RecordedResult]:
    """Decide when to try again. Equal failures get equal pauses, jitter included."""
    times: dict[tuple[object, ...], datetime | None] = {}
    recorded: list[RecordedResult] = []
    for claim, result in ended:
        retry_at, is_delivered = None, result.outcome == Outcome.OK
        if not is_delivered:
            failure = (result.status_code, result.error, result.retry_after)
            key = (claim.due.queue, claim.tried, *failure)
            if key not in times:
                times[key] = _retry_at(claim, result, now)
            retry_at = times[key]
        recorded.append(RecordedResult(claim, result, is_delivered, retry_at))
    return recorded


def _retry_at(claim: Claim, result: AttemptResult, now: datetime) -> datetime | None:
    """Return when to try again after a failure; None for never."""
    profile = claim.profile
    if result.status_code in profile.final_statuses:
        return None
    pause_s = profile.retry.delay_after(claim.tried, retry_after=result.retry_after)
    return None if pause_s is None else now + timedelta(seconds=pause_s)


def _count(recorded: Iterable[RecordedResult], now: datetime) -> None:
    """Count successes and failures of the endpoints, which are locked."""
    by_endpoint: dict[int, list[RecordedResult]] = defaultdict(list)
    for entry in recorded:
        by_endpoint[entry.result.queue].append(entry)
    clean = {
        pk
        for pk, entries in by_endpoint.items()
        if all(entry.is_delivered for entry in entries)
    }
    if clean:
        Endpoint.objects.succeed(clean, now)
    if failing := by_endpoint.keys() - clean:
        for endpoint in Endpoint.objects.filter(pk__in=failing).order_by("pk"):
            _count_one_by_one(endpoint, by_endpoint[endpoint.pk], now)


def _count_one_by_one(
    endpoint: Endpoint, entries: Iterable[RecordedResult], now: datetime
) -> None:
    """Count the results of an endpoint, and disable it when too many in a row are failures."""
    endpoint.last_attempt_at = now
    disabled_after = 0
    for entry in entries:
        if entry.is_delivered:
            endpoint.last_success_at, endpoint.failing_since = now, None
            endpoint.consecutive_failures = endpoint.timeouts = 0
            endpoint.failed_attempts = endpoint.alike_failures = 0
            continue
        _count_failure(endpoint, entry, now)
        limit = entry.claim.profile.disable_after or 0
        if not endpoint.is_disabled and 0 < limit <= endpoint.consecutive_failures:
            endpoint.status, disabled_after = Endpoint.Status.DISABLED, limit
            endpoint.disabled_at, endpoint.enabled_at = now, None
    endpoint.save(update_fields=COUNTED)
    if disabled_after:
        error = endpoint.last_error
        changes.record(endpoint.public_id, "disabled", by=changes.ENGINE)
        changes.send_disabled(endpoint, failures=disabled_after, error=error, now=now)


def _count_failure(endpoint: Endpoint, entry: RecordedResult, now: datetime) -> None:
    error = entry.result.error[:512]
    is_alike = endpoint.failing_since is not None and endpoint.last_error == error
    endpoint.alike_failures = endpoint.alike_failures + 1 if is_alike else 1
    endpoint.failing_since = endpoint.failing_since or now
    endpoint.failed_attempts += 1
    endpoint.consecutive_failures += 1
    if entry.has_timed_out:
        endpoint.timeouts += 1
    elif not endpoint.is_hanging:  # a receiver that hangs must succeed first
        endpoint.timeouts = 0
    endpoint.last_outcome = str(entry.result.outcome)
    endpoint.last_error = error
    endpoint.last_response = excerpt(entry.result.body)


def _update_deliveries(
    lease: DispatcherLease, recorded: Iterable[RecordedResult], now: datetime
) -> None:
    """Move deliveries to their next state: one UPDATE for all that share it."""
    delivered: list[int] = []
    failed: dict[tuple[int, datetime | None, str], list[int]] = defaultdict(list)
    for entry in recorded:
        result = entry.result
        if entry.is_delivered:
            delivered.append(result.key)
        else:
            failed[result.queue, entry.retry_at, result.error].append(result.key)
    sql.deliver(delivered, lease=lease.pk, at=now)
    for (_, retry_at, error), pks in failed.items():
        claimed = Delivery.objects.claimed(pks, lease=lease.pk)
        if retry_at:
            claimed.update(next_attempt_at=retry_at, last_error=error, claimed_by=None)
        else:
            claimed.fail(error=error)


def _insert_attempts(
    lease: DispatcherLease, recorded: Iterable[RecordedResult]
) -> None:
    sql.insert_attempts(
        [
            AttemptRow(
                delivery_id=result.key,
                number=claim.number,
                started_at=result.started_at,
                duration_ms=result.duration_ms,
                outcome=str(result.outcome),
                status_code=result.status_code,
                error=result.error[:512],
                response_body=result.body,
                is_repeated=result.is_repeated,
                details=details(result, claim.endpoint, lease=lease.pk),
            )
            for claim, result, *_ in recorded
        ]
    )


def excerpt(body: bytes) -> str:
    """Return the start of a response's body as one line of printable characters."""
    text = body[: 4 * EXCERPT].decode(errors="replace")
    words = " ".join(text.split())
    return "".join(filter(str.isprintable, words))[:EXCERPT]


def details(result: AttemptResult, endpoint: Endpoint, *, lease: int) -> str:
    """Return JSON: `lease`, and of a request that was sent `request` and `response`.

    These are the header lines, without the values of custom headers: they may hold credentials.
    Also `address`, and in milliseconds since the start of the attempt `connected`, `secured`
    (neither on a kept connection) and `first_byte`; null where it did not get there. `url` is the
    endpoint's at that time.
    """
    if not result.request_head:
        return orjson.dumps({"lease": lease, "url": endpoint.url}).decode()
    connected, secured, first_byte = result.timings
    fields = {
        "lease": lease,
        "url": endpoint.url,
        "request": _sent(result.request_head, endpoint.custom_headers),
        "response": _received(result),
        "address": result.address,
        "connected": connected,
        "secured": secured,
        "first_byte": first_byte,
    }
    return orjson.dumps(fields).decode()


def _sent(head: bytes, custom: EncryptedText | None) -> str:
    text = head.decode().partition("\r\n")[2].removesuffix("\r\n\r\n")
    if custom is None:
        return text
    headers: dict[str, Any] = orjson.loads(custom.decrypt())
    pairs = [line.partition(": ") for line in text.split("\r\n")]
    return "\r\n".join(
        f"{name}: {HIDDEN if name in headers else value}" for name, _, value in pairs
    )


def _received(result: AttemptResult) -> str:
    lines = [b"%s: %s" % pair for pair in result.response_headers]
    # PostgreSQL stores no NUL.
    return b"\r\n".join(lines).decode("latin-1").replace("\0", "\ufffd")
