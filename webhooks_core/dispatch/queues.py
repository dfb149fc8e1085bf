"""Endpoint queues: which ones a dispatcher has leased, and how much it may claim from each.

Every queue has a small window of its own, so that neither a long backlog nor a slow receiver
takes room from another endpoint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import starmap
from typing import NamedTuple

import orjson
from django.db import connection, transaction

from webhooks_core.database import limits
from webhooks_core.database.clock import clock
from webhooks_core.database.statements import as_time, execute, fetch, ids
from webhooks_core.dispatch import leases
from webhooks_core.dispatch.rate_limit import RateWindow, is_too_early
from webhooks_core.dispatch.shares import Owner
from webhooks_core.dispatch.sql.due_deliveries import DueDelivery
from webhooks_core.models import DispatcherLease, Endpoint, EndpointQueue

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

    `window` is how many deliveries can be claimed at once: twice what may be in flight, and more
    for a receiver that accepts more within CLAIM_AHEAD_MS, since a claim costs the same for any
    size. `next_check_at` is when the next delivery is due; None if none is known.

    The queue of an endpoint with a rate or a strict order, or that hangs, is `exact`: it claims
    nothing that cannot be sent at once. It has a `rate_window` if there is a rate; `not_before` then comes
    from what this dispatcher, or the one before it, claimed a moment ago. `local_failures` counts,
    in a row, attempts for which this machine had no port or address. `suspects` are due, and wait
    until they can be sent alone. `unrecorded` results have not been written yet. While it
    `awaits_record`, one of them decides what may be claimed next.
    """

    pk: int
    owner: Owner = ("", "")
    window: int = 0
    claimed: int = 0
    next_check_at: datetime | None = None
    exact: bool = False
    rate_window: RateWindow | None = None
    not_before: datetime | None = None
    local_failures: int = 0
    suspects: list[DueDelivery] = field(default_factory=list)
    unrecorded: int = 0
    awaits_record: bool = False

    @property
    def is_busy(self) -> bool:
        return bool(self.claimed or self.unrecorded)

    @property
    def has_room(self) -> bool:
        # More than half-full windows are left alone: fewer and larger claims cost less.
        most = self.window - 1 if self.exact else self.window // 2
        return not self.claimed or self.claimed <= most

    def is_due(self, now: datetime) -> bool:
        return (
            self.next_check_at is not None
            and self.next_check_at <= now
            and not self.awaits_record
            and not is_too_early(self.not_before, now)
        )

    def capacity(self, endpoint: Endpoint, now: datetime) -> int:
        """Update the window from an endpoint's limits; return how many more may be claimed."""
        rate = endpoint.rate_per_second
        self.exact = endpoint.in_order or endpoint.is_hanging or rate is not None
        if self.exact:
            # A result that is not written yet may have to be repeated before all others.
            self.window = endpoint.in_flight - self.unrecorded
        else:
            self.window = max(self.window, 2 * endpoint.in_flight)
        room = max(self.window - self.claimed, 0)
        if rate is None:
            self.rate_window = None
            return room
        self.rate_window = self.rate_window or RateWindow()
        remaining = self.rate_window.remaining(rate, now)
        self.not_before = None if remaining else self.rate_window.next_free_at(now)
        return min(room, remaining)

    def release_not_before(self, now: datetime) -> datetime | None:
        """Return the `not_before` for the dispatcher that leases this queue next."""
        if self.rate_window and (empty_at := self.rate_window.empty_at(now)):
            return empty_at
        return self.not_before if is_too_early(self.not_before, now) else None

    def schedule(self, at: datetime) -> None:
        """Note that a delivery is due at a time."""
        self.next_check_at = min(self.next_check_at or at, at)

    def widen(self, endpoint: Endpoint, duration_ms: int) -> None:
        """Double the window, up to what a receiver with such a response time accepts ahead."""
        ahead = endpoint.in_flight * CLAIM_AHEAD_MS // max(duration_ms, 1)
        self.window = max(self.window, min(self.window * 2, ahead, MAX_WINDOW))

    def narrow(self) -> None:
        self.window = 0

    def receive(self, *, is_ok: bool) -> None:
        """Count a result that is not written yet."""
        self.unrecorded += 1
        self.awaits_record |= self.exact or not is_ok


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
            if not (queue.is_busy or queue.suspects)
        ]

    def suspected(self) -> list[QueueState]:
        """Return the queues with suspects."""
        return [queue for queue in self._queues.values() if queue.suspects]

    def forget_suspects(self, now: datetime) -> None:
        """Leave the remaining suspects, and what waits with them, to the next dispatcher."""
        for queue in self.suspected():
            queue.suspects.clear()
            queue.schedule(now)

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
            if row.pk not in self._queues:
                self._queues[row.pk] = row.state()
            queue = self._queues[row.pk]
            queue.next_check_at = now
            if queue.claimed and not row.is_receiving:
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
            leased = _lease(self._lease, now, room, without=self._greedy)
        room = self._room(MAX_QUEUES_OF_ANY, LEASE_BATCH - len(leased))
        rest = _lease(self._lease, now, room) if room else []
        leased += rest
        is_full = len(rest) == room
        self._greedy = self._greedy | _greedy(leased) if is_full else frozenset()
        return leased

    def _room(self, most: int, batch: int) -> int:
        return min(max(most - len(self), 1), batch)

    def has_due(self, now: datetime) -> bool:
        """Return True if lease_due() would find a queue; called many times a second."""
        [(has_due,)] = fetch(_HAS_DUE, now, self._lease.pk)
        return bool(has_due)

    def next_at(self) -> datetime | None:
        """Return when the first delivery in our queues is due, as far as we know."""
        times = [
            max(queue.next_check_at, queue.not_before or queue.next_check_at)
            for queue in self._queues.values()
            if queue.next_check_at
        ]
        return min(times, default=None)

    def due(self, now: datetime) -> list[QueueState]:
        """Return the queues with due work and room for it, the emptiest first."""
        return sorted(
            (
                queue
                for queue in self._queues.values()
                if queue.is_due(now) and queue.has_room
            ),
            key=lambda queue: (queue.claimed, queue.next_check_at),
        )

    def mark_recorded(self, pks: Iterable[int]) -> None:
        """Note that all results of these queues have been written."""
        for pk in pks:
            if queue := self._queues.get(pk):
                queue.unrecorded, queue.awaits_record = 0, False

    def reload(self, now: datetime) -> None:
        """Read from the database which queues are ours: a commit may have had no confirmation.

        The queue of a removed endpoint stays until its attempts have ended.
        """
        rows = EndpointQueue.objects.filter(leased_by=self._lease.pk)
        busy = [pk for pk, queue in self._queues.items() if queue.is_busy]
        self._queues = {pk: self._queues[pk] for pk in busy} | {
            row.pk: self._queues.get(row.pk) or row.state()
            for row in starmap(LeasedRow, rows.values_list(*LEASED_COLUMNS))
        }
        for queue in self._queues.values():
            queue.next_check_at = now

    def release(self, pks: Iterable[int]) -> None:
        """Release queues, each with the time of its next delivery."""
        pks, now = list(pks), clock.now()
        if not pks:
            return
        rows = EndpointQueue.objects.filter(leased_by=self._lease.pk)
        with transaction.atomic():
            limits.limit_idle()
            for pk in pks:
                if next_check_at := self._queues[pk].next_check_at:
                    rows.mark_due([pk], at=next_check_at)
                if not_before := self._queues[pk].release_not_before(now):
                    rows.filter(pk=pk).update(not_before=not_before)
            rows.filter(pk__in=pks).update(leased_by=None)
        for pk in pks:
            del self._queues[pk]


# As EndpointQueueQuerySet.due: composing it with the ORM would double its cost.
_HAS_DUE = (
    "SELECT EXISTS (SELECT 1 FROM webhooks_core_endpointqueue"
    " WHERE next_due_at <= %s AND (leased_by IS NULL OR leased_by = %s))"
)


class LeasedRow(NamedTuple):
    """A queue that was just leased, and whose it is."""

    pk: int
    not_before: datetime | None
    profile: str
    owner: str
    is_receiving: bool = True

    def state(self) -> QueueState:
        owner = (self.profile, self.owner)
        return QueueState(self.pk, owner, not_before=self.not_before)


LEASED_COLUMNS = ("pk", "not_before", "endpoint__profile", "endpoint__owner")


def _greedy(leased: Sequence[LeasedRow]) -> frozenset[Owner]:
    """Return the owners with more than a quarter of a batch."""
    counts = Counter((row.profile, row.owner) for row in leased)
    return frozenset(
        owner for owner, count in counts.items() if 4 * count > len(leased)
    )


def _lease(
    lease: DispatcherLease, now: datetime, room: int, *, without: Collection[Owner] = ()
) -> list[LeasedRow]:
    """Lease the queues that are due first, except those of the owners in `without`.

    Their due time is cleared before the deliveries are read: a commit in between sets it again.
    """
    is_postgresql = connection.vendor == "postgresql"
    lease_queues = _lease_in_one_statement if is_postgresql else _lease_in_two
    return lease_queues(lease, now, room, without)


# As EndpointQuerySet.receiving.
_RECEIVING = (
    "endpoint.deleted_at IS NULL AND endpoint.active"
    f" AND endpoint.status = {Endpoint.Status.ACTIVE:d} AND endpoint.paused_at IS NULL"
)
_DUE = f"""
    SELECT queue.endpoint_id, queue.not_before, endpoint.profile, endpoint.owner, {_RECEIVING}
    FROM webhooks_core_endpointqueue queue
    JOIN webhooks_core_endpoint endpoint ON endpoint.id = queue.endpoint_id
    WHERE queue.next_due_at <= %s AND (queue.leased_by IS NULL OR queue.leased_by = %s)
    AND (endpoint.profile, endpoint.owner) NOT IN (
        SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(%s)
    )
    ORDER BY queue.next_due_at LIMIT %s
"""  # noqa: S608 - all constants
_LEASE_DUE = (
    "UPDATE webhooks_core_endpointqueue SET leased_by = %s, next_due_at = NULL"
    " WHERE endpoint_id AMONG %s"
)


def _lease_in_two(
    lease: DispatcherLease, now: datetime, room: int, without: Collection[Owner]
) -> list[LeasedRow]:
    with transaction.atomic():
        leases.lock(lease)
        rows = fetch(_DUE, now, lease.pk, orjson.dumps(list(without)).decode(), room)
        execute(_LEASE_DUE, lease.pk, ids([row[0] for row in rows]))
    return [LeasedRow(pk, as_time(not_before), *rest) for pk, not_before, *rest in rows]


# The same in one round trip. The lease is locked before its queues, as where leases expire; one
# that has expired gets no queue. The commit may return before it is on disk: the commit of the
# claim that follows writes it too.
_LEASE = """
    WITH living AS (
        SELECT id FROM webhooks_core_dispatcherlease WHERE id = %s AND ended_at IS NULL FOR UPDATE
    ), due AS (
        SELECT queue.endpoint_id FROM webhooks_core_endpointqueue queue, living
        WHERE queue.next_due_at <= %s AND (queue.leased_by IS NULL OR queue.leased_by = living.id)
        {without}
        ORDER BY queue.next_due_at LIMIT %s FOR UPDATE OF queue SKIP LOCKED
    )
    UPDATE webhooks_core_endpointqueue queue SET leased_by = living.id, next_due_at = NULL
    FROM due, living, webhooks_core_endpoint endpoint
    WHERE queue.endpoint_id = due.endpoint_id AND endpoint.id = due.endpoint_id
    RETURNING queue.endpoint_id, queue.not_before, endpoint.profile, endpoint.owner, {receiving},
        set_config('synchronous_commit', 'off', true)
"""
_WITHOUT = """
        AND NOT EXISTS (
            SELECT 1 FROM webhooks_core_endpoint endpoint WHERE endpoint.id = queue.endpoint_id
            AND (endpoint.profile, endpoint.owner) IN (SELECT * FROM unnest(%s::text[], %s::text[]))
        )"""
_LEASE_ANY, _LEASE_OTHERS = (
    _LEASE.format(receiving=_RECEIVING, without=without) for without in ("", _WITHOUT)
)


def _lease_in_one_statement(
    lease: DispatcherLease, now: datetime, room: int, without: Collection[Owner]
) -> list[LeasedRow]:
    owners = [list(part) for part in zip(*without, strict=True)]
    sql = _LEASE_OTHERS if without else _LEASE_ANY
    rows = fetch(sql, lease.pk, now, *owners, room)
    return [LeasedRow._make(row[:-1]) for row in rows]
