"""Lanes: which endpoints a shift works for, and how much it may claim from each.

Claims are fair by construction: every lane has its own small window, so that neither a long
backlog nor a slow receiver takes room from another endpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from webhooks_core.dispatch import leases
from webhooks_core.dispatch.rate_limit import RateWindow, is_held
from webhooks_core.models import DispatcherLease, Endpoint, EndpointQueue

MAX_LANES = 2000
# A few at a time, so that shifts that start together share what is due.
TAKE_AT_ONCE = 32
MAX_WINDOW = 128
# What a receiver can be expected to take in this time may be claimed ahead. What waits longer
# than the sender's STALE_AFTER_S is given back, so that much more would be work for nothing.
AHEAD_MS = 500
LANES_PER_QUERY = 100


@dataclass(slots=True)
class QueueState:
    """What a shift knows of a lane it owns.

    `window` is how many deliveries may be claimed at once: twice what may be in flight, and
    more for a receiver that takes more within AHEAD_MS: a look at the database costs the same
    however much it claims.
    `look_at` is when the next delivery is due; None means that none is known.

    The lane of an endpoint with a rate or a strict order is `exact`: it claims nothing that
    could not be sent at once. `pace` is kept for one with a rate, which may be `not_before` a
    time by what it, or its last owner, claimed a moment ago. `lacked` counts, in a row, attempts
    for which this machine had no port or address.
    """

    pk: int
    window: int = 0
    claimed: int = 0
    next_check_at: datetime | None = None
    exact: bool = False
    pace: RateWindow | None = None
    not_before: datetime | None = None
    lacked: int = 0

    @property
    def has_room(self) -> bool:
        # More than half-full windows are left alone: fewer and larger claims cost less.
        full = self.window - 1 if self.exact else self.window // 2
        return not self.claimed or self.claimed <= full

    def is_due(self, now: datetime) -> bool:
        return (
            self.next_check_at is not None
            and self.next_check_at <= now
            and not is_held(self.not_before, now)
        )

    def capacity(self, endpoint: Endpoint, now: datetime) -> int:
        """Open the window for an endpoint; return how many more may be claimed."""
        rate = endpoint.rate_per_second
        self.exact = endpoint.in_order or rate is not None
        if self.exact:
            self.window = endpoint.in_flight
        else:
            self.window = max(self.window, 2 * endpoint.in_flight)
        room = max(self.window - self.claimed, 0)
        if rate is None:
            self.pace = None
            return room
        self.pace = self.pace or RateWindow()
        left = self.pace.left(rate, now)
        self.not_before = None if left else self.pace.more_at(now)
        return min(room, left)

    def release_not_before(self, now: datetime) -> datetime | None:
        """Return until when whoever takes the lane next must hold it."""
        if self.pace and (until := self.pace.free_at(now)):
            return until
        return self.not_before if is_held(self.not_before, now) else None

    def schedule(self, at: datetime) -> None:
        """Note that a delivery is due at a time."""
        self.next_check_at = min(self.next_check_at or at, at)

    def widen(self, endpoint: Endpoint, duration_ms: int) -> None:
        """Double the window, up to what a receiver takes ahead that answers in such a time."""
        ahead = endpoint.in_flight * AHEAD_MS // max(duration_ms, 1)
        self.window = max(self.window, min(self.window * 2, ahead, MAX_WINDOW))

    def narrow(self) -> None:
        self.window = 0


class LeasedQueues:
    """The lanes of one shift, in memory and in the database."""

    def __init__(self, shift: DispatcherLease) -> None:
        self._shift = shift
        self._owned: dict[int, QueueState] = {}

    def __len__(self) -> int:
        return len(self._owned)

    def __getitem__(self, pk: int) -> QueueState:
        return self._owned[pk]

    def values(self) -> Iterable[QueueState]:
        return self._owned.values()

    def lease_due(self, now: datetime) -> int:
        """Lease lanes with work, and hear the bells of our own; return how many."""
        if not self.has_due(now):
            return 0
        room = min(max(MAX_LANES - len(self), 1), TAKE_AT_ONCE)
        # The bell is silenced before the deliveries are read: what is committed in between
        # rings again.
        lease = _lease_at_once if connection.vendor == "postgresql" else _lease
        mine = lease(self._shift, now, room)
        for pk, not_before in mine.items():
            if pk not in self._owned:
                self._owned[pk] = QueueState(pk, not_before=not_before)
            self._owned[pk].next_check_at = now
        return len(mine)

    def has_due(self, now: datetime) -> bool:
        """Tell whether take_due() would find any: for one who waits, many times a second."""
        at = connection.ops.adapt_datetimefield_value(now)
        with connection.cursor() as cursor:
            cursor.execute(_CALLED, (at, self._shift.pk))
            return bool(cursor.fetchone()[0])

    def next_at(self) -> datetime | None:
        """Return when the first of our own is due, by what we know."""
        known = [
            max(it.next_check_at, it.not_before or it.next_check_at)
            for it in self._owned.values()
            if it.next_check_at
        ]
        return min(known, default=None)

    def due(self, now: datetime) -> list[QueueState]:
        """Return those that have work and room for it, the emptiest first."""
        return sorted(
            (it for it in self._owned.values() if it.is_due(now) and it.has_room),
            key=lambda lane: (lane.claimed, lane.next_check_at),
        )

    def reload(self, now: datetime) -> None:
        """Learn from the database what is ours: it may not have heard our last words."""
        owned = EndpointQueue.objects.filter(leased_by=self._shift.pk)
        self._owned = {
            pk: self._owned.get(pk) or QueueState(pk, not_before=not_before)
            for pk, not_before in owned.values_list("pk", "not_before")
        }
        for lane in self._owned.values():
            lane.next_check_at = now

    def release(self, pks: Iterable[int]) -> None:
        """Give lanes back, each with the time of its next delivery."""
        pks, now = list(pks), timezone.now()
        if not pks:
            return
        mine = EndpointQueue.objects.filter(leased_by=self._shift.pk)
        with transaction.atomic():
            for pk in pks:
                if look_at := self._owned[pk].next_check_at:
                    later = Q(next_due_at=None) | Q(next_due_at__gt=look_at)
                    mine.filter(later, pk=pk).update(next_due_at=look_at)
                if rest := self._owned[pk].release_not_before(now):
                    mine.filter(pk=pk).update(not_before=rest)
            mine.filter(pk__in=pks).update(leased_by=None)
        for pk in pks:
            del self._owned[pk]


# As LaneQuerySet.due, which the ORM would compose anew each time for twice what it costs.
_CALLED = (
    "SELECT EXISTS (SELECT 1 FROM webhooks_core_endpointqueue"
    " WHERE next_due_at <= %s AND (leased_by IS NULL OR leased_by = %s))"
)


def _lease(
    shift: DispatcherLease, now: datetime, room: int
) -> dict[int, datetime | None]:
    """Make lanes ours; return until when each is held. Raises LostError."""
    with transaction.atomic():
        leases.lock(shift)
        due = EndpointQueue.objects.due(now, lease=shift.pk)[:room]
        mine = dict(due.values_list("pk", "not_before"))
        EndpointQueue.objects.filter(pk__in=list(mine)).update(
            leased_by=shift.pk, next_due_at=None
        )
    return mine


# The same for a server, to which each statement is a way there and back. The shift is locked
# before its lanes, as by whoever buries it; one that is buried gets none. The commit need not
# be on disk when it returns: a claim that follows is, and takes along what was written before.
_LEASE = """
    WITH living AS (
        SELECT id FROM webhooks_core_dispatcherlease WHERE id = %s AND ended_at IS NULL FOR UPDATE
    ), due AS (
        SELECT queue.endpoint_id FROM webhooks_core_endpointqueue queue, living
        WHERE queue.next_due_at <= %s AND (queue.leased_by IS NULL OR queue.leased_by = living.id)
        ORDER BY queue.next_due_at LIMIT %s FOR UPDATE OF queue SKIP LOCKED
    )
    UPDATE webhooks_core_endpointqueue queue SET leased_by = living.id, next_due_at = NULL
    FROM due, living WHERE queue.endpoint_id = due.endpoint_id
    RETURNING queue.endpoint_id, queue.not_before,
        set_config('synchronous_commit', 'off', true)
"""


def _lease_at_once(
    shift: DispatcherLease, now: datetime, room: int
) -> dict[int, datetime | None]:
    with connection.cursor() as cursor:
        cursor.execute(_LEASE, (shift.pk, now, room))
        mine = {pk: not_before for pk, not_before, _ in cursor.fetchall()}
    if not mine:  # others were quicker, or this shift is buried
        with transaction.atomic():
            leases.lock(shift)
    return mine


class DueDelivery(NamedTuple):
    """A waiting delivery near the head of its lane; `size` is that of its event in bytes.

    `later` is when it is due, None for one that is due already.
    """

    pk: int
    public_id: str
    event_pk: int
    queue: int
    attempts: int
    interruptions: int
    size: int
    later: datetime | None


class ClaimLimit(NamedTuple):
    """How many deliveries of a lane are wanted, and whether strictly in the events' order."""

    queue: int
    room: int
    in_order: bool = False


def due_deliveries(wanted: Sequence[ClaimLimit], now: datetime) -> list[DueDelivery]:
    """Return the earliest waiting deliveries of each lane: one more than asked for.

    The extra one tells when the lane must be looked at again. One indexed range per lane:
    the cost does not grow with the backlog. Written in SQL, since the ORM has no such query
    and its model instances would be half of the cost of a claim.
    """
    found: list[DueDelivery] = []
    at = connection.ops.adapt_datetimefield_value(now)
    for start in range(0, len(wanted), LANES_PER_QUERY):
        part = wanted[start : start + LANES_PER_QUERY]
        sql = " UNION ALL ".join(_NEXT if it.in_order else _HEAD for it in part)
        params = [value for it in part for value in (at, it.queue, it.room + 1)]
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            found += map(_head, cursor.fetchall())
    return found


def _head(row: tuple[Any, ...]) -> DueDelivery:
    later = row[-1]
    if isinstance(later, str):  # SQLite does not know that an expression is a time
        later = datetime.fromisoformat(later).replace(tzinfo=connection.timezone)
        return DueDelivery._make((*row[:-1], later))
    return DueDelivery._make(row)


# Times that have come need not be read: that alone would be a quarter of a claim's cost.
_WAITING = (
    "SELECT * FROM (SELECT d.id, d.public_id, d.event_id, d.endpoint_id, d.attempts,"
    " d.interruptions, e.size,"
    " CASE WHEN d.next_attempt_at > %s THEN d.next_attempt_at END"
    " FROM webhooks_core_delivery d JOIN webhooks_core_event e ON e.id = d.event_id"
    " WHERE d.endpoint_id = %s AND d.status = 0 AND d.claimed_by IS NULL"
)
_HEAD = f"{_WAITING} ORDER BY d.next_attempt_at, d.id LIMIT %s) AS head"
# Whatever its own time: the first one is due or keeps the others waiting.
_NEXT = f"{_WAITING} ORDER BY d.event_id, d.id LIMIT %s) AS head"
