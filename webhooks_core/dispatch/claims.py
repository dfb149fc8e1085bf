"""Claiming: due deliveries become requests, and the claim is committed before sending."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import structlog
from django.db import transaction

from webhooks_core import profiles
from webhooks_core.dispatch import leases, sql
from webhooks_core.dispatch.queues import LeasedQueues, QueueState
from webhooks_core.dispatch.shares import Owner, Shares
from webhooks_core.dispatch.signer import Body, RequestSigner, prepare
from webhooks_core.dispatch.sql import DueDelivery
from webhooks_core.models import Delivery, DispatcherLease, Endpoint
from webhooks_core.network.connectivity import Connectivity
from webhooks_core.network.transport import OutgoingRequest
from webhooks_core.profiles import WebhookProfile
from webhooks_core.secrets import EncryptedText

# The most that one owner may claim. For other owners, a third of it is kept free.
MAX_CLAIMED = 2048
MAX_BYTES = 32 * 1024 * 1024
# When a queue is looked at again: while there is no network, and while another suspect is sent.
SECOND = timedelta(seconds=1)
SUSPECT_TICK = timedelta(milliseconds=100)
# How long an endpoint is left out whose deliveries cannot be claimed.
PAUSE_AFTER_ERROR = timedelta(minutes=1)

log = structlog.stdlib.get_logger(__name__)


class Claim(NamedTuple):
    """One attempt that this dispatcher has claimed."""

    due: DueDelivery
    endpoint: Endpoint
    profile: WebhookProfile

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

    Each owner has its share of both. One suspect at a time may be among them.
    """

    lease: DispatcherLease
    queues: LeasedQueues
    connectivity: Connectivity = field(default_factory=Connectivity)
    _open: dict[int, Claim] = field(default_factory=dict, init=False)
    _count: Shares = field(default_factory=lambda: Shares(MAX_CLAIMED), init=False)
    _bytes: Shares = field(default_factory=lambda: Shares(MAX_BYTES), init=False)
    _suspects: set[int] = field(default_factory=set, init=False)
    _is_contended: bool = field(default=False, init=False)

    def __len__(self) -> int:
        return len(self._open)

    def pop(self, pk: int) -> Claim:
        """Remove the claim of a delivery that has a result."""
        claim = self._open.pop(pk)
        owner = self.queues[claim.due.queue].owner
        self._count.add(owner, -1)
        self._bytes.add(owner, -claim.due.size)
        self._suspects.discard(pk)
        return claim

    def claim_due(self, now: datetime) -> list[OutgoingRequest]:
        """Claim what is due and fits; return the requests, which may be sent now.

        One endpoint whose deliveries cannot be claimed does not keep the others waiting.
        """
        if not (queues := self._with_room(self.queues.claimable(now))):
            return []
        try:
            return self._claim(queues, now)
        except Exception as error:  # an error of one row must not affect the others
            if leases.is_general(error):
                raise
            log.exception("batch claim failed")
        return [
            request for queue in queues for request in self._claim_alone(queue, now)
        ]

    def _with_room(self, due: Sequence[QueueState]) -> list[QueueState]:
        """Return the queues of owners that may claim more, the owner with the fewest first."""
        owners = {queue.owner for queue in due}
        self._is_contended = several = len(owners) > 1
        wanted = {
            owner
            for owner in owners
            if self._count.room(owner, is_contended=several)
            and self._bytes.room(owner, is_contended=several)
        }
        queues = [queue for queue in due if queue.owner in wanted]
        return sorted(queues, key=lambda queue: self._count.held(queue.owner))

    def _claim_alone(self, queue: QueueState, now: datetime) -> list[OutgoingRequest]:
        try:
            return self._claim([queue], now)
        except Exception as error:
            if leases.is_general(error):
                raise
            ids = Endpoint.objects.filter(pk=queue.pk).values_list("public_id")
            log.exception("endpoint claim failed", endpoint=ids.first())
        queue.next_check_at = now + PAUSE_AFTER_ERROR
        return []

    def _claim(
        self, queues: Sequence[QueueState], now: datetime
    ) -> list[OutgoingRequest]:
        with transaction.atomic():
            # Read for every claim: a changed URL, a new secret or a deletion applies at once.
            pks = [queue.pk for queue in queues]
            endpoints, secrets = sql.lock_and_read(self.lease, pks, now)
            due = self._select(self._limits(queues, endpoints, now), now)
            claimed = self._claim_rows(due)
            sent = prepare(claimed, endpoints, lease=self.lease.pk)
            claimed = [row for row in claimed if row.pk in sent]
            requests = [
                request
                for pk, rows in groupby(claimed, key=attrgetter("queue"))
                for request in _requests(rows, endpoints[pk], secrets[pk], sent)
            ]
        self._open_claims(claimed, endpoints)
        return requests

    def _limits(
        self,
        queues: Sequence[QueueState],
        endpoints: Mapping[int, Endpoint],
        now: datetime,
    ) -> dict[int, int]:
        """Return how much may be claimed from each queue now: an owner's share in equal parts.

        A queue cannot use its whole window if less is due.
        """
        count, limits = self._count.copy(), dict[int, int]()
        left = Counter(queue.owner for queue in queues)
        trial = self.connectivity.trial_queue([queue.pk for queue in queues], now)
        for queue in queues:
            parts, endpoint = left[queue.owner], endpoints.get(queue.pk)
            left[queue.owner] -= 1
            if endpoint is None or not _is_served(endpoint):
                has_more = endpoint is not None and _fail_what_may_not_wait(endpoint)
                # A change that lets it receive again notifies.
                queue.next_check_at = now if has_more else None
                continue
            share = count.room(queue.owner, is_contended=self._is_contended)
            room = min(queue.room(endpoint), -(-share // parts))
            if self.connectivity.postpones(
                endpoint.owner, endpoint.url, endpoint.allowed_networks
            ):
                queue.next_check_at = now + SECOND
                room = min(room, queue.pk == trial)
            count.add(queue.owner, room)
            if room:
                limits[queue.pk] = room
        return limits

    def _select(self, limits: Mapping[int, int], now: datetime) -> list[DueDelivery]:
        """Return the deliveries to claim, and set when each queue is checked next."""
        selected: list[DueDelivery] = []
        fits = partial(self._bytes.copy().take, is_contended=self._is_contended)
        for pk in limits:
            self.queues[pk].next_check_at = None
        suspects = self._suspects.copy()
        rows = sql.due_deliveries(limits, now)
        for pk, due in groupby(rows, key=attrgetter("queue")):
            selected += _take(self.queues[pk], due, limits[pk], fits, suspects, now)
        return selected

    def _claim_rows(self, due: Sequence[DueDelivery]) -> list[DueDelivery]:
        pks = [row.pk for row in due]
        if sql.claim(pks, lease=self.lease.pk) == len(pks):
            return list(due)
        # Another process may have failed some of them since.
        claimed = Delivery.objects.still_claimed(pks, lease=self.lease.pk)
        return [row for row in due if row.pk in claimed]

    def _open_claims(
        self, claimed: Iterable[DueDelivery], endpoints: Mapping[int, Endpoint]
    ) -> None:
        for pk, rows in groupby(claimed, key=attrgetter("queue")):
            endpoint, queue, due = endpoints[pk], self.queues[pk], list(rows)
            profile = profiles.get(endpoint.profile)
            self._open |= {row.pk: Claim(row, endpoint, profile) for row in due}
            self._suspects |= {row.pk for row in due if row.is_suspect}
            self._count.add(queue.owner, len(due))
            self._bytes.add(queue.owner, sum([row.size for row in due]))
            queue.open += len(due)


def _take(
    queue: QueueState,
    due: Iterable[DueDelivery],
    room: int,
    fits: Callable[[Owner, int], bool],
    suspects: set[int],
    now: datetime,
) -> list[DueDelivery]:
    """Return the first deliveries of a queue to claim.

    A suspect is among them only while `suspects`, to which it is added, has none.
    """
    taken: list[DueDelivery] = []
    for row in due:
        if suspects and row.is_suspect and not row.later:
            queue.schedule(now + SUSPECT_TICK)
            continue
        if row.later or len(taken) == room or not fits(queue.owner, row.size):
            queue.schedule(row.later or now)
            break
        taken.append(row)
        if row.is_suspect:
            suspects.add(row.pk)
    return taken


def _fail_what_may_not_wait(endpoint: Endpoint) -> bool:
    """Fail some deliveries if the endpoint's may not wait; return True if there may be more."""
    if not (reason := endpoint.pending_failure):
        return False
    # Read again: the endpoint may be active since, with new deliveries.
    waiting = Delivery.objects.waiting().filter(endpoint=endpoint)
    suspended = waiting.exclude(endpoint__in=Endpoint.objects.receiving())
    return suspended.fail_some(error=reason) > 0


def _is_served(endpoint: Endpoint) -> bool:
    return endpoint.is_receiving and profiles.get(endpoint.profile).enabled


def _requests(
    due: Iterable[DueDelivery],
    endpoint: Endpoint,
    secrets: Sequence[EncryptedText],
    sent: Mapping[int, Body],
) -> Iterator[OutgoingRequest]:
    """Yield the requests to one endpoint."""
    owner, limit = (endpoint.profile, endpoint.owner), endpoint.in_flight
    timeout_s = profiles.get(endpoint.profile).timeout_s
    networks, signer = endpoint.allowed_networks, RequestSigner(endpoint, secrets)
    for row in due:
        body = sent[row.pk]
        yield OutgoingRequest(
            key=row.pk,
            queue=row.queue,
            owner=owner,
            limit=limit,
            url=endpoint.url,
            body=body.bytes,
            sign=partial(signer.headers, row.public_id, body),
            timeout_s=timeout_s,
            networks=networks,
        )
