"""Endpoint queues: which ones a dispatcher has leased, and how much it may claim from each.

Every queue has a small window of its own, so that neither a long backlog nor a slow receiver
takes room from another endpoint.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, zip_longest

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from webhooks_core import profiles
from webhooks_core.dispatch import sql
from webhooks_core.dispatch.shares import Owner, Shares
from webhooks_core.dispatch.sql import DueQueue
from webhooks_core.models import (
    Delivery,
    DispatcherLease,
    Endpoint,
    EndpointQueue,
)
from webhooks_core.network.transport import AttemptResult

# Of one owner; for others, a third more are kept free.
MAX_QUEUES = 2000
# Small, so that dispatchers that start together share what is due.
LEASE_BATCH = 32
# Owners take turns among so many queues.
CANDIDATES = 256
MAX_WINDOW = 128
# Claim ahead what a receiver can be expected to accept in this time. A request that waits longer
# than the sender's STALE_AFTER_S is given back, so that much more would be wasted work.
CLAIM_AHEAD_MS = 200
# A publisher notifies after its commit: a queue that is overdue for less than this may still be
# notified, and needs no repair.
GRACE = timedelta(seconds=5)


@dataclass(slots=True)
class QueueState:
    """A queue that a dispatcher has leased: its window, and how many claims of it are open.

    The window is how many deliveries can be claimed at once: twice what may be in flight, and more
    for a receiver that accepts more within CLAIM_AHEAD_MS, since a claim costs the same for any
    size. That of an endpoint that hangs is one. A success is open until it is received. A failure is open
    until it is written: it may have to be repeated before others, or end the endpoint.
    """

    pk: int
    owner: Owner = ("", "")
    window: int = 0
    open: int = 0
    # When the next delivery is due; None if none is known.
    next_check_at: datetime | None = None

    def is_claimable(self, now: datetime) -> bool:
        """Return True if something is due, and the window has room for it."""
        if self.next_check_at is None or self.next_check_at > now:
            return False
        # More than half-full windows are left alone: fewer and larger claims cost less.
        return self.open <= self.window // 2

    def room(self, endpoint: Endpoint) -> int:
        """Update the window from an endpoint's limit; return how many more may be claimed."""
        most = 2 * endpoint.max_in_flight
        self.window = 1 if endpoint.is_hanging else max(self.window, most)
        return max(self.window - self.open, 0)

    def schedule(self, at: datetime) -> None:
        """Note that a delivery is due at a time."""
        self.next_check_at = min(self.next_check_at or at, at)

    def adapt(self, result: AttemptResult, endpoint: Endpoint, now: datetime) -> None:
        """Adapt the window to a receiver.

        A quick one gets twice the window, up to what it accepts ahead; a slow one the narrowest.
        """
        if result.outcome is None or result.is_slow:
            self.window = 0
        elif self.is_claimable(now):
            duration_ms = max(result.duration_ms, 1)
            ahead = endpoint.in_flight * CLAIM_AHEAD_MS // duration_ms
            self.window = max(self.window, min(2 * self.window, ahead, MAX_WINDOW))


class LeasedQueues:
    """The queues of one dispatcher, in memory and in the database."""

    def __init__(self, lease: DispatcherLease) -> None:
        self._lease = lease
        self._queues: dict[int, QueueState] = {}
        self._held = Shares(MAX_QUEUES)

    def __len__(self) -> int:
        return len(self._queues)

    def __getitem__(self, pk: int) -> QueueState:
        return self._queues[pk]

    def lease_due(self, now: datetime) -> int:
        """Lease free queues with work, and note new work in our own; return how many."""
        due = sql.due_queues(self._lease, now, at_most=CANDIDATES)
        chosen = {pk: (profile, owner) for pk, profile, owner in self._in_turn(due)}
        leased = sql.lease_queues(self._lease, chosen, now) if chosen else ()
        for pk in leased:
            if pk not in self._queues:
                self._queues[pk] = QueueState(pk, chosen[pk])
                self._held.add(chosen[pk], 1)
            self._queues[pk].next_check_at = now
        return len(leased)

    def _in_turn(self, due: Iterable[DueQueue]) -> list[DueQueue]:
        """Return the next queues to lease: our own, and of each owner in turn another one."""
        own = [row for row in due if row[0] in self._queues][:LEASE_BATCH]
        by_owner: dict[Owner, list[DueQueue]] = defaultdict(list)
        for row in due:
            if row[0] not in self._queues:
                by_owner[row[1:]].append(row)
        several = len(by_owner) > 1
        for owner, rows in by_owner.items():
            del rows[self._held.room(owner, is_contended=several) :]
        fewest_first = sorted(by_owner, key=self._held.held)
        turns = zip_longest(*(by_owner[owner] for owner in fewest_first))
        return [*own, *filter(None, chain.from_iterable(turns))][:LEASE_BATCH]

    def claimable(self, now: datetime) -> list[QueueState]:
        """Return the queues with due work and room for it, the emptiest first."""
        return sorted(
            (queue for queue in self._queues.values() if queue.is_claimable(now)),
            key=lambda queue: (queue.open, queue.next_check_at),
        )

    def release(self, *, keep: Collection[int], near: datetime | None = None) -> None:
        """Release the queues without open claims that have nothing due before `near`.

        Not those to `keep`, of which results wait to be written.
        """
        idle = [
            queue
            for pk, queue in self._queues.items()
            if not (queue.open or pk in keep)
            and not (near and queue.next_check_at and queue.next_check_at <= near)
        ]
        if not idle:
            return
        rows = EndpointQueue.objects.filter(leased_by=self._lease.pk)
        pks = [queue.pk for queue in idle]
        with transaction.atomic():
            for queue in idle:
                if queue.next_check_at:
                    rows.mark_due([queue.pk], at=queue.next_check_at)
            rows.filter(pk__in=pks).update(leased_by=None)
        for queue in idle:
            del self._queues[queue.pk]
            self._held.add(queue.owner, -1)


def repair(now: datetime) -> int:
    """Make free queues due whose earliest delivery is overdue; return how many.

    A publisher that died between its commit and its notification leaves such a queue. What waits
    for a deleted endpoint is found too: the claim fails it.
    """
    overdue = _served().annotate(next_due=Delivery.objects.next_due())
    overdue = overdue.filter(pk=OuterRef("pk"), next_due__lt=now - GRACE)
    stale = EndpointQueue.objects.filter(
        Q(next_due_at=None) | Q(next_due_at__gt=now), Exists(overdue), leased_by=None
    )
    pks = list(stale.values_list("pk", flat=True))
    return EndpointQueue.objects.mark_due(pks, at=now)


def _served() -> QuerySet[Endpoint]:
    """Return the endpoints whose waiting deliveries a dispatcher would send or fail."""
    enabled, ending = Q(pk=None), Q(deleted_at__isnull=False)
    for profile in profiles.registered():
        if profile.enabled:
            enabled |= Q(profile=profile.name)
        if profile.inactive_fails_pending:
            ending |= Q(profile=profile.name, active=False)
    receiving = Endpoint.objects.receiving().filter(enabled)
    return receiving | Endpoint.objects.filter(ending)
