"""Claiming: deliveries that are due become requests, committed before anything is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

import structlog
from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from webhooks_core import profiles, tracing
from webhooks_core.dispatch import leases
from webhooks_core.dispatch.connectivity import Connectivity
from webhooks_core.dispatch.queues import (
    ClaimLimit,
    DueDelivery,
    LeasedQueues,
    QueueState,
    due_deliveries,
)
from webhooks_core.dispatch.rate_limit import SECOND
from webhooks_core.models import Delivery, DispatcherLease, Endpoint, Event
from webhooks_core.models.lookups import among
from webhooks_core.network.transport import OutgoingRequest
from webhooks_core.profiles import WebhookProfile
from webhooks_core.signing.signer import Body, RequestSigner, signers
from webhooks_core.url_access import allowed_networks

MAX_CLAIMED = 1024
MAX_BYTES = 32 * 1024 * 1024
PUT_ASIDE = timedelta(minutes=1)
# What the database does to everybody, and soon no longer.
TRANSIENT_ERRORS = (OperationalError, InterfaceError)

log = structlog.stdlib.get_logger(__name__)


class Claim(NamedTuple):
    """One attempt that this shift has taken upon itself."""

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


class OpenClaims:
    """All that a shift has claimed and not yet settled, bounded in number and bytes."""

    def __init__(
        self,
        shift: DispatcherLease,
        lanes: LeasedQueues,
        network: Connectivity | None = None,
    ) -> None:
        self._shift = shift
        self._lanes = lanes
        self._network = network or Connectivity()
        self._open: dict[int, Claim] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, pk: int) -> bool:
        return pk in self._open

    def pop(self, pk: int) -> Claim:
        """Forget a claim that has been settled."""
        claim = self._open.pop(pk)
        self._bytes -= claim.due.size
        self._lanes[claim.due.queue].claimed -= 1
        return claim

    def claim_due(self, now: datetime) -> list[OutgoingRequest]:
        """Claim what is due and fits; return the requests, which may be sent now.

        One endpoint that cannot be served does not keep the others from it.
        """
        lanes = self._lanes.due(now)
        if not lanes or self._bytes >= MAX_BYTES or len(self) >= MAX_CLAIMED:
            return []
        try:
            return self._take(lanes, now)
        except (*TRANSIENT_ERRORS, leases.LeaseLostError):
            raise
        except Exception:  # whatever one row does, the others are sent
            log.exception("batch claim failed")
        return [request for lane in lanes for request in self._take_one(lane, now)]

    def _take_one(self, lane: QueueState, now: datetime) -> list[OutgoingRequest]:
        try:
            return self._take([lane], now)
        except (*TRANSIENT_ERRORS, leases.LeaseLostError):
            raise
        except Exception:
            log.exception("endpoint claim failed", endpoint=_public_id(lane.pk))
        lane.next_check_at = now + PUT_ASIDE
        return []

    def _take(
        self, lanes: Sequence[QueueState], now: datetime
    ) -> list[OutgoingRequest]:
        with transaction.atomic():
            leases.lock(self._shift)
            endpoints = _endpoints([lane.pk for lane in lanes])
            self._end_waiting(endpoints.values())
            due = self._choose(self._allot(lanes, endpoints, now), now)
            claimed = self._claim(due)
            bodies = _bodies(claimed)
            parents = tracing.parents({it.pk: it.event_pk for it in claimed})
            theirs = {head.queue: endpoints[head.queue] for head in claimed}
            signing = signers(list(theirs.values()), now)
            made = [
                _request(it, theirs[it.queue], signing[it.queue], bodies[it.event_pk])
                for it in claimed
            ]
        for head in claimed:
            self._open_claim(head, endpoints[head.queue])
        self._keep_pace(claimed)
        return tracing.trace(made, parents)

    def release_unconfirmed(self, *, settling: Iterable[int]) -> int:
        """Give back what the database holds for us but never told us; return how many.

        That is a claim whose commit went unconfirmed: its requests were never made.
        """
        held = set(
            Delivery.objects.claimed_by(self._shift.pk).values_list("pk", flat=True)
        )
        unheard = held.difference(self._open, settling)
        return Delivery.objects.release(list(unheard), lease=self._shift.pk)

    def _end_waiting(self, endpoints: Iterable[Endpoint]) -> None:
        for endpoint in endpoints:
            if reason := endpoint.ends_waiting:
                Delivery.objects.waiting().filter(endpoint=endpoint).fail(error=reason)

    def _allot(
        self,
        lanes: Sequence[QueueState],
        endpoints: Mapping[int, Endpoint],
        now: datetime,
    ) -> list[ClaimLimit]:
        """Return how much each of the lanes that may claim now is to claim."""
        left, allotted = MAX_CLAIMED - len(self), []
        exempt = self._network.trial_queue([lane.pk for lane in lanes], now)
        for lane in lanes:
            endpoint = endpoints.get(lane.pk)
            if endpoint is None or not _is_served(endpoint):
                lane.next_check_at = None  # whoever makes it receive again rings
                continue
            room = min(lane.capacity(endpoint, now), left)
            if self._network.is_offline and self._is_held(endpoint):
                lane.not_before = now + SECOND
                room = min(room, lane.pk == exempt)
            left -= room
            if room:
                allotted.append(ClaimLimit(lane.pk, room, endpoint.in_order))
        return allotted

    def _is_held(self, endpoint: Endpoint) -> bool:
        reach = allowed_networks(endpoint)
        return self._network.postpones(endpoint.owner, endpoint.url, reach)

    def _choose(self, wanted: Sequence[ClaimLimit], now: datetime) -> list[DueDelivery]:
        """Return the deliveries to claim, and set when each lane is looked at next."""
        room, budget = {it.queue: it.room for it in wanted}, MAX_BYTES - self._bytes
        due: list[DueDelivery] = []
        for pk in room:
            self._lanes[pk].next_check_at = None
        for head in due_deliveries(wanted, now):
            if head.queue not in room:
                continue  # behind one that is not for now
            if head.later or room[head.queue] == 0 or budget <= 0:
                self._lanes[head.queue].schedule(head.later or now)
                del room[head.queue]
                continue
            room[head.queue] -= 1
            budget -= head.size
            due.append(head)
        return due

    def _claim(self, due: Sequence[DueDelivery]) -> list[DueDelivery]:
        pks = [head.pk for head in due]
        if Delivery.objects.claim(pks, lease=self._shift.pk) == len(pks):
            return list(due)
        # Somebody ended some of them in the meantime.
        claimed = Delivery.objects.claimed(pks, lease=self._shift.pk)
        mine = set(claimed.values_list("pk", flat=True))
        return [head for head in due if head.pk in mine]

    def _keep_pace(self, claimed: Sequence[DueDelivery]) -> None:
        """Note what counts against a rate, from now on: the commit may have taken its time."""
        now = timezone.now()
        for pk, count in Counter(head.queue for head in claimed).items():
            if pace := self._lanes[pk].pace:
                pace.note(count, now)

    def _open_claim(self, head: DueDelivery, endpoint: Endpoint) -> None:
        self._open[head.pk] = Claim(head, endpoint, profiles.get(endpoint.profile))
        self._bytes += head.size
        self._lanes[head.queue].claimed += 1


def _public_id(pk: int) -> str | None:
    ids = Endpoint.objects.filter(pk=pk).values_list("public_id", flat=True)
    return ids.first()


def _is_served(endpoint: Endpoint) -> bool:
    return endpoint.is_receiving and profiles.get(endpoint.profile).enabled


def _endpoints(pks: Sequence[int]) -> dict[int, Endpoint]:
    # Read anew for every claim: a changed url, a new secret or a deletion counts at once.
    rows = Endpoint.objects.filter(among(pks))
    return {it.pk: it for it in rows.defer("event_types", "description")}


def _bodies(due_deliveries: Sequence[DueDelivery]) -> dict[int, Body]:
    rows = Event.objects.filter(among({head.event_pk for head in due_deliveries}))
    return {
        pk: Body(public_id, event_type, bytes(body))
        for pk, public_id, event_type, body in rows.values_list(
            "pk", "public_id", "type", "body"
        )
    }


def _request(
    head: DueDelivery, endpoint: Endpoint, signer: RequestSigner, event: Body
) -> OutgoingRequest:
    return OutgoingRequest(
        key=head.pk,
        delivery_id=head.public_id,
        queue=head.queue,
        limit=endpoint.in_flight,
        immediate=endpoint.rate_per_second is not None,
        url=endpoint.url,
        body=event.bytes,
        sign=partial(signer.headers, head.public_id, event),
        timeout_s=profiles.get(endpoint.profile).timeout_s,
        networks=allowed_networks(endpoint),
    )
