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

from webhooks_core.dispatch import shifts
from webhooks_core.dispatch.pace import Pace, is_held
from webhooks_core.models import Endpoint, Lane, Shift

MAX_LANES = 2000
# A few at a time, so that shifts that start together share what is due.
TAKE_AT_ONCE = 32
MAX_WINDOW = 128
LANES_PER_QUERY = 100


@dataclass(slots=True)
class LaneState:
    """What a shift knows of a lane it owns.

    `window` is how many deliveries may be claimed at once: twice what may be in flight, and
    more for a receiver that is quick enough to run dry between two looks at the database.
    `look_at` is when the next delivery is due; None means that none is known.

    The lane of an endpoint with a rate or a strict order is `exact`: it claims nothing that
    could not be sent at once. `pace` is kept for one with a rate, which may be `held_until` a
    time by what it, or its last owner, claimed a moment ago. `lacked` counts, in a row, attempts
    for which this machine had no port or address.
    """

    pk: int
    window: int = 0
    claimed: int = 0
    look_at: datetime | None = None
    exact: bool = False
    pace: Pace | None = None
    held_until: datetime | None = None
    lacked: int = 0

    @property
    def is_thirsty(self) -> bool:
        # More than half-full windows are left alone: fewer and larger claims cost less.
        full = self.window - 1 if self.exact else self.window // 2
        return not self.claimed or self.claimed <= full

    def is_due(self, now: datetime) -> bool:
        return (
            self.look_at is not None
            and self.look_at <= now
            and not is_held(self.held_until, now)
        )

    def allow(self, endpoint: Endpoint, now: datetime) -> int:
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
        self.pace = self.pace or Pace()
        left = self.pace.left(rate, now)
        self.held_until = None if left else self.pace.more_at(now)
        return min(room, left)

    def rest(self, now: datetime) -> datetime | None:
        """Return until when whoever takes the lane next must hold it."""
        if self.pace and (until := self.pace.free_at(now)):
            return until
        return self.held_until if is_held(self.held_until, now) else None

    def expect(self, at: datetime) -> None:
        """Note that a delivery is due at a time."""
        self.look_at = min(self.look_at or at, at)

    def widen(self) -> None:
        self.window = min(self.window * 2, MAX_WINDOW)

    def narrow(self) -> None:
        self.window = 0


class Lanes:
    """The lanes of one shift, in memory and in the database."""

    def __init__(self, shift: Shift) -> None:
        self._shift = shift
        self._owned: dict[int, LaneState] = {}

    def __len__(self) -> int:
        return len(self._owned)

    def __getitem__(self, pk: int) -> LaneState:
        return self._owned[pk]

    def values(self) -> Iterable[LaneState]:
        return self._owned.values()

    def take_due(self, now: datetime) -> int:
        """Lease lanes with work, and hear the bells of our own; return how many."""
        room = min(max(MAX_LANES - len(self), 1), TAKE_AT_ONCE)
        due = list(
            Lane.objects.due(now, owner=self._shift.pk).values_list("pk", flat=True)[
                :room
            ]
        )
        if not due:
            return 0
        with transaction.atomic():
            shifts.hold(self._shift)
            # The bell is silenced before the deliveries are read: what is committed in
            # between rings again.
            locked = Lane.objects.due(now, owner=self._shift.pk).filter(pk__in=due)
            if connection.features.has_select_for_update_skip_locked:
                locked = locked.select_for_update(skip_locked=True)
            mine = dict(locked.values_list("pk", "held_until"))
            Lane.objects.filter(pk__in=list(mine)).update(
                owner=self._shift.pk, next_due_at=None
            )
        for pk, held_until in mine.items():
            if pk not in self._owned:
                self._owned[pk] = LaneState(pk, held_until=held_until)
            self._owned[pk].look_at = now
        return len(mine)

    def due(self, now: datetime) -> list[LaneState]:
        """Return those that have work and room for it, the emptiest first."""
        return sorted(
            (it for it in self._owned.values() if it.is_due(now) and it.is_thirsty),
            key=lambda lane: (lane.claimed, lane.look_at),
        )

    def reload(self, now: datetime) -> None:
        """Learn from the database what is ours: it may not have heard our last words."""
        owned = Lane.objects.filter(owner=self._shift.pk)
        self._owned = {
            pk: self._owned.get(pk) or LaneState(pk, held_until=held_until)
            for pk, held_until in owned.values_list("pk", "held_until")
        }
        for lane in self._owned.values():
            lane.look_at = now

    def release(self, pks: Iterable[int]) -> None:
        """Give lanes back, each with the time of its next delivery."""
        pks, now = list(pks), timezone.now()
        if not pks:
            return
        mine = Lane.objects.filter(owner=self._shift.pk)
        with transaction.atomic():
            for pk in pks:
                if look_at := self._owned[pk].look_at:
                    later = Q(next_due_at=None) | Q(next_due_at__gt=look_at)
                    mine.filter(later, pk=pk).update(next_due_at=look_at)
                if rest := self._owned[pk].rest(now):
                    mine.filter(pk=pk).update(held_until=rest)
            mine.filter(pk__in=pks).update(owner=None)
        for pk in pks:
            del self._owned[pk]


class Head(NamedTuple):
    """A waiting delivery near the head of its lane; `size` is that of its event in bytes.

    `later` is when it is due, None for one that is due already.
    """

    pk: int
    public_id: str
    event_pk: int
    lane: int
    attempts: int
    interruptions: int
    size: int
    later: datetime | None


class Wanted(NamedTuple):
    """How many deliveries of a lane are wanted, and whether strictly in the events' order."""

    lane: int
    room: int
    in_order: bool = False


def heads(wanted: Sequence[Wanted], now: datetime) -> list[Head]:
    """Return the earliest waiting deliveries of each lane: one more than asked for.

    The extra one tells when the lane must be looked at again. One indexed range per lane:
    the cost does not grow with the backlog. Written in SQL, since the ORM has no such query
    and its model instances would be half of the cost of a claim.
    """
    found: list[Head] = []
    at = connection.ops.adapt_datetimefield_value(now)
    for start in range(0, len(wanted), LANES_PER_QUERY):
        part = wanted[start : start + LANES_PER_QUERY]
        sql = " UNION ALL ".join(_NEXT if it.in_order else _HEAD for it in part)
        params = [value for it in part for value in (at, it.lane, it.room + 1)]
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            found += map(_head, cursor.fetchall())
    return found


def _head(row: tuple[Any, ...]) -> Head:
    later = row[-1]
    if isinstance(later, str):  # SQLite does not know that an expression is a time
        later = datetime.fromisoformat(later).replace(tzinfo=connection.timezone)
        return Head._make((*row[:-1], later))
    return Head._make(row)


# Times that have come need not be read: that alone would be a quarter of a claim's cost.
_WAITING = (
    "SELECT * FROM (SELECT d.id, d.public_id, d.event_id, d.endpoint_id, d.attempts,"
    " d.interruptions, e.size,"
    " CASE WHEN d.next_attempt_at > %s THEN d.next_attempt_at END"
    " FROM webhooks_core_delivery d JOIN webhooks_core_event e ON e.id = d.event_id"
    " WHERE d.endpoint_id = %s AND d.status = 0 AND d.claim IS NULL"
)
_HEAD = f"{_WAITING} ORDER BY d.next_attempt_at, d.id LIMIT %s) AS head"
# Whatever its own time: the first one is due or keeps the others waiting.
_NEXT = f"{_WAITING} ORDER BY d.event_id, d.id LIMIT %s) AS head"
