"""Lanes: which endpoints a shift works for, and how much it may claim from each.

Claims are fair by construction: every lane has its own small window, so that neither a long
backlog nor a slow receiver takes room from another endpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Q

from webhooks_core.dispatch import shifts
from webhooks_core.models import Lane, Shift

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
    """

    pk: int
    window: int = 0
    claimed: int = 0
    look_at: datetime | None = None

    @property
    def is_thirsty(self) -> bool:
        # More than half-full windows are left alone: fewer and larger claims cost less.
        return self.claimed <= self.window // 2

    def is_due(self, now: datetime) -> bool:
        return self.look_at is not None and self.look_at <= now

    def allow(self, in_flight: int) -> int:
        """Open the window for an endpoint; return how many more may be claimed."""
        self.window = max(self.window, 2 * in_flight)
        return max(self.window - self.claimed, 0)

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
            mine = list(locked.values_list("pk", flat=True))
            Lane.objects.filter(pk__in=mine).update(
                owner=self._shift.pk, next_due_at=None
            )
        for pk in mine:
            self._owned.setdefault(pk, LaneState(pk)).look_at = now
        return len(mine)

    def due(self, now: datetime) -> list[LaneState]:
        """Return those that have work and room for it, the emptiest first."""
        return sorted(
            (it for it in self._owned.values() if it.is_due(now) and it.is_thirsty),
            key=lambda lane: (lane.claimed, lane.look_at),
        )

    def reload(self, now: datetime) -> None:
        """Learn from the database what is ours: it may not have heard our last words."""
        owned = Lane.objects.filter(owner=self._shift.pk).values_list("pk", flat=True)
        self._owned = {pk: self._owned.get(pk) or LaneState(pk) for pk in owned}
        for lane in self._owned.values():
            lane.look_at = now

    def release(self, pks: Iterable[int]) -> None:
        """Give lanes back, each with the time of its next delivery."""
        pks = list(pks)
        if not pks:
            return
        mine = Lane.objects.filter(owner=self._shift.pk)
        with transaction.atomic():
            for pk in pks:
                if look_at := self._owned[pk].look_at:
                    later = Q(next_due_at=None) | Q(next_due_at__gt=look_at)
                    mine.filter(later, pk=pk).update(next_due_at=look_at)
            mine.filter(pk__in=pks).update(owner=None)
        for pk in pks:
            del self._owned[pk]


class Head(NamedTuple):
    """A waiting delivery near the head of its lane; `size` is that of its event in bytes."""

    pk: int
    public_id: str
    event_pk: int
    lane: int
    attempts: int
    interruptions: int
    due_at: datetime
    size: int


def heads(wanted: Sequence[tuple[int, int]]) -> list[Head]:
    """Return the earliest waiting deliveries of each lane: one more than asked for.

    The extra one tells when the lane must be looked at again. One indexed range per lane:
    the cost does not grow with the backlog. Written in SQL, since the ORM has no such query
    and its model instances would be half of the cost of a claim.
    """
    found: list[Head] = []
    for start in range(0, len(wanted), LANES_PER_QUERY):
        part = wanted[start : start + LANES_PER_QUERY]
        sql = " UNION ALL ".join([_HEAD] * len(part))
        params = [value for pk, room in part for value in (pk, room + 1)]
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            found += map(_head, cursor.fetchall())
    return found


def _head(row: tuple[Any, ...]) -> Head:
    *facts, due_at, size = row
    if due_at.tzinfo is None:  # SQLite's driver reads times as naive
        due_at = due_at.replace(tzinfo=UTC)
    return Head._make((*facts, due_at, size))


_HEAD = (
    "SELECT * FROM (SELECT d.id, d.public_id, d.event_id, d.endpoint_id, d.attempts,"
    " d.interruptions, d.next_attempt_at, e.size"
    " FROM webhooks_core_delivery d JOIN webhooks_core_event e ON e.id = d.event_id"
    " WHERE d.endpoint_id = %s AND d.status = 0 AND d.claim IS NULL"
    " ORDER BY d.next_attempt_at, d.id LIMIT %s) AS head"
)
