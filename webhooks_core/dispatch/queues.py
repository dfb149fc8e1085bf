"""Endpoint queues: which ones a dispatcher has leased, and how much it may claim from each.

Every queue has a small window of its own, so that neither a long backlog nor a slow receiver
takes room from another endpoint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from webhooks_core.database import limits
from webhooks_core.dispatch import leases
from webhooks_core.dispatch.shares import Owner
from webhooks_core.dispatch.sql import queues
from webhooks_core.dispatch.sql.deliveries import DueDelivery
from webhooks_core.dispatch.sql.queues import LeasedRow
from webhooks_core.models import DispatcherLease, Endpoint, EndpointQueue
from webhooks_core.network.outcomes import Outcome
from webhooks_core.network.transport import AttemptResult

MAX_QUEUES = 2000
# Beyond these, only queues of owners that do not fill whole batches are leased.
MAX_QUEUES_OF_ANY = MAX_QUEUES * 3 // 4
# Small, so that dispatchers that start together share what is due.
LEASE_BATCH = 32
MAX_WINDOW = 128
# Claim ahead what a receiver can be expected to accept in this time. A request that waits longer
# than the sender's STALE_AFTER_S is released, so that much more would be wasted work.
CLAIM_AHEAD_MS = 200


@dataclass(slots=True)
class QueueState:
    """The state of a queue that a dispatcher has leased.

    Its window is how many deliveries can be claimed at once: twice what may be in flight, and more
    for a receiver that accepts more within CLAIM_AHEAD_MS, since a claim costs the same for any
    size. The queue of an endpoint that hangs is exact: it claims
    nothing that cannot be sent at once. A suspect is due, and waits until it can be sent alone.
    """

    pk: int
    owner: Owner = ("", "")
    _not_before: datetime | None = field(default=None, init=False)
    _window: int = field(default=0, init=False)
    _open: int = field(default=0, init=False)
    _next_check_at: datetime | None = field(default=None, init=False)
    _is_exact: bool = field(default=False, init=False)
    _suspects: list[DueDelivery] = field(default_factory=list, init=False)
    _unrecorded: int = field(default=0, init=False)
    # A result that is not written yet decides what may be claimed next.
    _awaits_record: bool = field(default=False, init=False)

    @property
    def claims(self) -> int:
        """The number of open claims."""
        return self._open

    @property
    def is_busy(self) -> bool:
        return bool(self._open or self._unrecorded)

    @property
    def has_suspects(self) -> bool:
        return bool(self._suspects)

    @property
    def awaits_record(self) -> bool:
        return self._awaits_record

    @property
    def next_check_at(self) -> datetime | None:
        """When the next delivery is due; None if none is known."""
        return self._next_check_at

    @property
    def next_claim_at(self) -> datetime | None:
        """When a delivery is due and may be claimed; None if none is known."""
        if self._next_check_at is None:
            return None
        return max(self._next_check_at, self._not_before or self._next_check_at)

    def why_idle(self, now: datetime) -> str:
        """Return why nothing is claimed from this queue now; "" if something may be."""
        if self._next_check_at is None or self._next_check_at > now:
            return "nothing is due"
        if self._awaits_record:
            return "a result is not written yet"
        if self._not_before is not None and now < self._not_before:
            return "it is postponed"
        # More than half-full windows are left alone: fewer and larger claims cost less.
        most = self._window - 1 if self._is_exact else self._window // 2
        return "its window is full" if self._open and self._open > most else ""

    def room(self, endpoint: Endpoint) -> int:
        """Update the window from an endpoint's limits; return how many more may be claimed."""
        self._is_exact = endpoint.is_hanging
        if self._is_exact:
            # A result that is not written yet may have to be repeated before all others.
            self._window = endpoint.in_flight - self._unrecorded
        else:
            self._window = max(self._window, 2 * endpoint.in_flight)
        return max(self._window - self._open, 0)

    def check_at(self, at: datetime | None) -> None:
        """Set when a delivery is due; None if none is."""
        self._next_check_at = at

    def scheduled(self, at: datetime) -> None:
        """Note that a delivery is due at a time."""
        self._next_check_at = min(self._next_check_at or at, at)

    def postponed(self, until: datetime) -> None:
        """Claim nothing before a time."""
        self._not_before = until

    def claimed(self, count: int) -> None:
        """Count claims."""
        self._open += count

    def ended(self) -> None:
        """Note that a claim has a result, or is released."""
        self._open -= 1

    def received(
        self, result: AttemptResult, endpoint: Endpoint, now: datetime
    ) -> None:
        """Count a result that is not written yet, and adapt the window to its receiver.

        A quick one gets twice the window, up to what it accepts ahead; a slow one the narrowest.
        """
        self._unrecorded += 1
        self._awaits_record |= self._is_exact or result.outcome != Outcome.OK
        if result.outcome is None or result.is_slow:
            self._window = 0
        elif not self.why_idle(now):
            duration_ms = max(result.duration_ms, 1)
            ahead = endpoint.in_flight * CLAIM_AHEAD_MS // duration_ms
            self._window = max(self._window, min(2 * self._window, ahead, MAX_WINDOW))

    def recorded(self) -> None:
        """Note that all its results have been written."""
        self._unrecorded, self._awaits_record = 0, False

    def begin_selection(self) -> int:
        """Forget what is known of due deliveries; return how many suspects there were."""
        known = len(self._suspects)
        self._next_check_at, self._suspects = None, []
        return known

    def note_suspect(self, due: DueDelivery) -> None:
        self._suspects.append(due)

    def pop_suspect(self) -> DueDelivery:
        return self._suspects.pop(0)

    def forget_suspects(self) -> None:
        self._suspects = []


class LeasedQueues:
    """The queues of one dispatcher, in memory and in the database."""

    def __init__(self, lease: DispatcherLease) -> None:
        self._lease = lease
        self._queues: dict[int, QueueState] = {}
        # What waits in the sender for endpoints that receive nothing any more.
        self._stopped: list[int] = []
        # The owners that had more than a quarter of a batch, since batches have no room for more.
        self._greedy: frozenset[Owner] = frozenset()

    def __len__(self) -> int:
        return len(self._queues)

    def __getitem__(self, pk: int) -> QueueState:
        return self._queues[pk]

    def idle(self) -> list[QueueState]:
        """Return the queues without open claims, unwritten results and suspects."""
        return [
            queue
            for queue in self._queues.values()
            if not (queue.is_busy or queue.has_suspects)
        ]

    def suspected(self) -> list[QueueState]:
        """Return the queues with suspects."""
        return [queue for queue in self._queues.values() if queue.has_suspects]

    def forget_suspects(self, now: datetime) -> None:
        """Leave the remaining suspects, and what waits with them, to the next dispatcher."""
        for queue in self.suspected():
            queue.forget_suspects()
            queue.scheduled(now)

    def lease_due(self, now: datetime, *, is_known: bool = False) -> int:
        """Lease free queues with work, and note new work in our own; return how many.

        With `is_known`, has_due() was true a moment ago.
        """
        if not is_known and not self.has_due(now):
            return 0
        leased = self._lease_batch(now)
        if not leased:  # another dispatcher was first, or this lease has expired
            with transaction.atomic():
                leases.lock(self._lease)
        for row in leased:
            queue = self._queues.setdefault(row.pk, _state(row))
            queue.check_at(now)
            if queue.claims and not row.is_receiving:
                self._stopped.append(row.pk)
        return len(leased)

    def pop_stopped(self) -> list[int]:
        """Return the queues with claims whose endpoints have just been found to receive nothing."""
        stopped, self._stopped = self._stopped, []
        return stopped

    def _lease_batch(self, now: datetime) -> list[LeasedRow]:
        """Lease the next queues; after a batch mostly of one owner, those of others first."""
        leased: list[LeasedRow] = []
        if self._greedy:
            room = self._room(MAX_QUEUES, LEASE_BATCH)
            leased = queues.lease_due(self._lease, now, room, without=self._greedy)
        room = self._room(MAX_QUEUES_OF_ANY, LEASE_BATCH - len(leased))
        rest = queues.lease_due(self._lease, now, room) if room else []
        leased += rest
        is_full = len(rest) == room
        self._greedy = self._greedy | _greedy(leased) if is_full else frozenset()
        return leased

    def _room(self, most: int, batch: int) -> int:
        return min(max(most - len(self), 1), batch)

    def has_due(self, now: datetime) -> bool:
        """Return True if lease_due() would find a queue; called many times a second."""
        return queues.has_due(self._lease.pk, now)

    def next_at(self) -> datetime | None:
        """Return when the first delivery in our queues is due, as far as we know."""
        times = (queue.next_claim_at for queue in self._queues.values())
        return min(filter(None, times), default=None)

    def due(self, now: datetime) -> list[QueueState]:
        """Return the queues with due work and room for it, the emptiest first."""
        return sorted(
            (queue for queue in self._queues.values() if not queue.why_idle(now)),
            key=lambda queue: (queue.claims, queue.next_check_at),
        )

    def mark_recorded(self, pks: Iterable[int]) -> None:
        """Note that all results of these queues have been written."""
        for pk in pks:
            if queue := self._queues.get(pk):
                queue.recorded()

    def reload(self, now: datetime) -> None:
        """Read from the database which queues are ours: a commit may have had no confirmation.

        The queue of a removed endpoint stays until its attempts have ended.
        """
        busy = [pk for pk, queue in self._queues.items() if queue.is_busy]
        self._queues = {pk: self._queues[pk] for pk in busy} | {
            row.pk: self._queues.get(row.pk) or _state(row)
            for row in queues.leased(self._lease)
        }
        for queue in self._queues.values():
            queue.check_at(now)

    def release(self, pks: Iterable[int]) -> None:
        """Release queues, each with the time of its next delivery."""
        pks = list(pks)
        if not pks:
            return
        rows = EndpointQueue.objects.filter(leased_by=self._lease.pk)
        with transaction.atomic():
            limits.limit_idle()
            for pk in pks:
                if next_check_at := self._queues[pk].next_check_at:
                    rows.mark_due([pk], at=next_check_at)
            rows.filter(pk__in=pks).update(leased_by=None)
        for pk in pks:
            del self._queues[pk]


def _state(row: LeasedRow) -> QueueState:
    return QueueState(row.pk, (row.profile, row.owner))


def _greedy(leased: Sequence[LeasedRow]) -> frozenset[Owner]:
    """Return the owners with more than a quarter of a batch."""
    counts = Counter((row.profile, row.owner) for row in leased)
    return frozenset(
        owner for owner, count in counts.items() if 4 * count > len(leased)
    )
