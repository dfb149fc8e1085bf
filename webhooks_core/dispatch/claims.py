"""Claiming: due deliveries become requests, and the claim is committed before sending."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

import structlog
from django.db import transaction

from webhooks_core import profiles
from webhooks_core.dispatch import leases, preparing
from webhooks_core.dispatch.queues import LeasedQueues, QueueState
from webhooks_core.dispatch.shares import Shares
from webhooks_core.dispatch.signer import RequestSigner, signers
from webhooks_core.dispatch.sql import deliveries
from webhooks_core.dispatch.sql import endpoints as endpoint_rows
from webhooks_core.dispatch.sql.deliveries import (
    ClaimLimit,
    DueDelivery,
    due_deliveries,
)
from webhooks_core.dispatch.sql.endpoints import Body
from webhooks_core.endpoints import allowed_networks, pending_failure
from webhooks_core.models import Delivery, DispatcherLease, Endpoint
from webhooks_core.network.connectivity import Connectivity
from webhooks_core.network.transport import OutgoingRequest
from webhooks_core.profiles import WebhookProfile

# The most that one owner may claim. For other owners, a third of it is kept free.
MAX_CLAIMED = 2048
MAX_BYTES = 32 * 1024 * 1024
SECOND = timedelta(seconds=1)
# How long an endpoint is left out whose deliveries cannot be claimed.
PAUSE_AFTER_ERROR = timedelta(minutes=1)

log = structlog.stdlib.get_logger(__name__)


class Claim(NamedTuple):
    """One attempt that this dispatcher has claimed."""

    due: DueDelivery
    endpoint: Endpoint
    profile: WebhookProfile

    @property
    def pk(self) -> int:
        return self.due.pk

    @property
    def number(self) -> int:
        """The number of this attempt, from 1."""
        return self.due.attempts + 1

    @property
    def tried(self) -> int:
        """The attempts that the retry policy counts, this one included."""
        return self.number - self.due.interruptions


@dataclass(eq=False)
class OpenClaims:
    """All claims of a dispatcher without a result, bounded in number and bytes.

    Each owner has its share of both.
    """

    lease: DispatcherLease
    queues: LeasedQueues
    connectivity: Connectivity = field(default_factory=Connectivity)
    _open: dict[int, Claim] = field(default_factory=dict, init=False)
    _count: Shares = field(default_factory=lambda: Shares(MAX_CLAIMED), init=False)
    _bytes: Shares = field(default_factory=lambda: Shares(MAX_BYTES), init=False)

    def __len__(self) -> int:
        return len(self._open)

    def pop(self, pk: int) -> Claim:
        """Remove the claim of a delivery that has a result."""
        claim = self._open.pop(pk)
        queue = self.queues[claim.due.queue]
        self._count.add(queue.owner, -1)
        self._bytes.add(queue.owner, -claim.due.size)
        queue.ended()
        return claim

    def claim_due(self, now: datetime) -> list[OutgoingRequest]:
        """Claim what is due and fits; return the requests, which may be sent now.

        One endpoint whose deliveries cannot be claimed does not keep the others waiting.
        """
        if not (queues := self._with_room(self.queues.due(now))):
            return []
        try:
            return self._claim_batch(queues, now)
        except Exception as error:  # an error of one row must not affect the others
            if leases.is_general(error):
                raise
            log.exception("batch claim failed")
        return self._claim_one_by_one(queues, now)

    def _claim_one_by_one(
        self, queues: Iterable[QueueState], now: datetime
    ) -> list[OutgoingRequest]:
        requests: list[OutgoingRequest] = []
        try:
            for queue in queues:
                requests += self._claim_single(queue, now)
        except Exception:
            # These are not sent: once the database is back, they are released.
            for request in requests:
                self.pop(request.key)
            raise
        return requests

    def _with_room(self, due: Sequence[QueueState]) -> list[QueueState]:
        """Return the queues of owners that may claim more, the owner with the fewest first."""
        owners = {queue.owner for queue in due}
        self._count.is_contended = self._bytes.is_contended = len(owners) > 1
        wanted = {
            owner
            for owner in owners
            if self._count.room(owner) and self._bytes.room(owner)
        }
        queues = [queue for queue in due if queue.owner in wanted]
        return sorted(queues, key=lambda queue: self._count.held(queue.owner))

    def claim_suspect(self, now: datetime) -> list[OutgoingRequest]:
        """Claim one suspect that may be sent now; nothing else may be claimed until it ends."""
        for queue in self.queues.suspected():
            queue.scheduled(now)  # the next dispatcher looks for what else waits
            if requests := self._claim_single(queue, now, isolated=True):
                return requests
            queue.forget_suspects()
        return []

    def _claim_single(
        self, queue: QueueState, now: datetime, *, isolated: bool = False
    ) -> list[OutgoingRequest]:
        try:
            return self._claim_batch([queue], now, isolated=isolated)
        except Exception as error:
            if leases.is_general(error):
                raise
            ids = Endpoint.objects.filter(pk=queue.pk).values_list(
                "public_id", flat=True
            )
            log.exception("endpoint claim failed", endpoint=ids.first())
        queue.check_at(now + PAUSE_AFTER_ERROR)
        return []

    def _claim_batch(
        self, queues: Sequence[QueueState], now: datetime, *, isolated: bool = False
    ) -> list[OutgoingRequest]:
        with transaction.atomic():
            leases.lock(self.lease)
            # Read for every claim: a changed URL, a new secret or a deletion applies at once.
            endpoints = endpoint_rows.by_pk([queue.pk for queue in queues])
            select = self._select_suspect if isolated else self._select_due
            due = select(self._claim_limits(queues, endpoints, now), now)
            rows = self._claim_rows(due)
            bodies = endpoint_rows.bodies({row.event_pk for row in rows})
            claimed, sent = preparing.prepare(
                rows, endpoints, bodies, lease=self.lease.pk
            )
            signed = {row.queue: endpoints[row.queue] for row in claimed}
            signer_of = signers(list(signed.values()), now)
            requests = [
                _request(row, endpoints[row.queue], signer_of[row.queue], sent[row.pk])
                for row in claimed
            ]
        self._open_claims(claimed, endpoints)
        return requests

    def release_unconfirmed(self, *, unrecorded: Iterable[int]) -> int:
        """Release claims of this lease that are in the database but not in this dispatcher's memory.

        Their commit went unconfirmed, so their requests were never made. Return how many.
        """
        stored = set(
            Delivery.objects.claimed_by(self.lease.pk).values_list("pk", flat=True)
        )
        unconfirmed = stored.difference(self._open, unrecorded)
        return Delivery.objects.release(unconfirmed, lease=self.lease.pk)

    def _claim_limits(
        self,
        queues: Sequence[QueueState],
        endpoints: Mapping[int, Endpoint],
        now: datetime,
    ) -> list[ClaimLimit]:
        """Return how much may be claimed from each queue now."""
        count, limits = self._count.copy(), []
        trial = self.connectivity.trial_queue([queue.pk for queue in queues], now)
        for queue in queues:
            endpoint = endpoints.get(queue.pk)
            if endpoint is None or not _is_served(endpoint):
                has_more = endpoint is not None and _fail_what_may_not_wait(endpoint)
                # A change that lets it receive again notifies.
                queue.check_at(now if has_more else None)
                continue
            if probe_at := _probe_at(endpoint, now):
                queue.check_at(probe_at)
                continue
            room = min(queue.room(endpoint), count.room(queue.owner))
            if self.connectivity.is_offline and self._is_postponed(endpoint):
                queue.postponed(now + SECOND)
                room = min(room, queue.pk == trial)
            count.add(queue.owner, room)
            if room:
                limits.append(ClaimLimit(queue.pk, room))
        return limits

    def _is_postponed(self, endpoint: Endpoint) -> bool:
        networks = allowed_networks(endpoint)
        return self.connectivity.postpones(endpoint.owner, endpoint.url, networks)

    def _select_due(
        self, limits: Sequence[ClaimLimit], now: datetime
    ) -> list[DueDelivery]:
        """Return the deliveries to claim, and set when each queue is checked next.

        Suspects are only noted.
        """
        room = {limit.queue: limit.room for limit in limits}
        sizes = self._bytes.copy()
        selected: list[DueDelivery] = []
        limits = [self._past_suspects(limit) for limit in limits]
        unread = {limit.queue: limit.room + 1 for limit in limits}
        for due in due_deliveries(limits, now):
            unread[due.queue] -= 1
            if due.queue not in room:
                continue  # behind one that cannot be claimed now
            queue = self.queues[due.queue]
            if due.later or room[due.queue] == 0 or not sizes.room(queue.owner):
                queue.scheduled(due.later or now)
                del room[due.queue]
            elif due.is_suspect:
                queue.note_suspect(due)
            else:
                room[due.queue] -= 1
                sizes.add(queue.owner, due.size)
                selected.append(due)
        for pk in room:
            if not unread[pk]:  # suspects took the place of others
                self.queues[pk].scheduled(now)
        return selected

    def _past_suspects(self, limit: ClaimLimit) -> ClaimLimit:
        """Forget what is known of a queue; return a limit that also reads its suspects."""
        known = self.queues[limit.queue].begin_selection()
        return limit._replace(room=limit.room + known)

    def _select_suspect(
        self, limits: Sequence[ClaimLimit], now: datetime
    ) -> list[DueDelivery]:
        """Return the first suspect of a queue."""
        return [self.queues[limit.queue].pop_suspect() for limit in limits[:1]]

    def _claim_rows(self, due: Sequence[DueDelivery]) -> list[DueDelivery]:
        pks = [row.pk for row in due]
        if deliveries.claim(pks, lease=self.lease.pk) == len(pks):
            return list(due)
        # Another process may have failed some of them since.
        claimed = deliveries.still_claimed(pks, lease=self.lease.pk)
        return [row for row in due if row.pk in claimed]

    def _open_claims(
        self, claimed: Sequence[DueDelivery], endpoints: Mapping[int, Endpoint]
    ) -> None:
        for due in claimed:
            endpoint, owner = endpoints[due.queue], self.queues[due.queue].owner
            self._open[due.pk] = Claim(due, endpoint, profiles.get(endpoint.profile))
            self._count.add(owner, 1)
            self._bytes.add(owner, due.size)
        for pk, count in Counter(due.queue for due in claimed).items():
            self.queues[pk].claimed(count)


def _fail_what_may_not_wait(endpoint: Endpoint) -> bool:
    """Fail some deliveries if the endpoint's may not wait; return True if there may be more."""
    if not (reason := pending_failure(endpoint)):
        return False
    # Read again: the endpoint may be active since, with new deliveries.
    suspended = Delivery.objects.suspended().filter(endpoint=endpoint)
    return suspended.fail_some(error=reason) > 0


def _probe_at(endpoint: Endpoint, now: datetime) -> datetime | None:
    """Return until when an endpoint that hangs gets nothing; None if it may get something."""
    if not endpoint.is_hanging:
        return None
    return endpoint.probe_at(now, profiles.get(endpoint.profile).retry)


def _is_served(endpoint: Endpoint) -> bool:
    return endpoint.is_receiving and profiles.get(endpoint.profile).enabled


def _request(
    due: DueDelivery,
    endpoint: Endpoint,
    signer: RequestSigner,
    event: Body,
) -> OutgoingRequest:
    return OutgoingRequest(
        key=due.pk,
        queue=due.queue,
        owner=(endpoint.profile, endpoint.owner),
        limit=endpoint.in_flight,
        has_answered=endpoint.has_answered,
        url=endpoint.url,
        body=event.bytes,
        sign=partial(signer.headers, due.public_id, event),
        timeout_s=profiles.get(endpoint.profile).timeout_s,
        networks=allowed_networks(endpoint),
    )
