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
from webhooks_core.dispatch.connectivity import Network
from webhooks_core.dispatch.queues import Head, Lanes, LaneState, Wanted, heads
from webhooks_core.dispatch.rate_limit import SECOND
from webhooks_core.models import Delivery, Endpoint, Event, Shift
from webhooks_core.models.lookups import among
from webhooks_core.network.transport import Request
from webhooks_core.profiles import WebhookProfile
from webhooks_core.signing.signer import Body, Signer, signers
from webhooks_core.url_access import reach_of

MAX_CLAIMED = 1024
MAX_BYTES = 32 * 1024 * 1024
PUT_ASIDE = timedelta(minutes=1)
# What the database does to everybody, and soon no longer.
PASSING = (OperationalError, InterfaceError)

log = structlog.stdlib.get_logger(__name__)


class Claim(NamedTuple):
    """One attempt that this shift has taken upon itself."""

    head: Head
    endpoint: Endpoint
    profile: WebhookProfile

    @property
    def pk(self) -> int:
        return self.head.pk

    @property
    def number(self) -> int:
        """The number of this attempt, from 1."""
        return self.head.attempts + 1

    @property
    def tried(self) -> int:
        """The attempts that the retry policy counts, this one included."""
        return self.number - self.head.interruptions


class Claims:
    """All that a shift has claimed and not yet settled, bounded in number and bytes."""

    def __init__(
        self, shift: Shift, lanes: Lanes, network: Network | None = None
    ) -> None:
        self._shift = shift
        self._lanes = lanes
        self._network = network or Network()
        self._open: dict[int, Claim] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, pk: int) -> bool:
        return pk in self._open

    def pop(self, pk: int) -> Claim:
        """Forget a claim that has been settled."""
        claim = self._open.pop(pk)
        self._bytes -= claim.head.size
        self._lanes[claim.head.lane].claimed -= 1
        return claim

    def take(self, now: datetime) -> list[Request]:
        """Claim what is due and fits; return the requests, which may be sent now.

        One endpoint that cannot be served does not keep the others from it.
        """
        lanes = self._lanes.due(now)
        if not lanes or self._bytes >= MAX_BYTES or len(self) >= MAX_CLAIMED:
            return []
        try:
            return self._take(lanes, now)
        except (*PASSING, leases.LostError):
            raise
        except Exception:  # whatever one row does, the others are sent
            log.exception("claims failed together")
        return [request for lane in lanes for request in self._take_one(lane, now)]

    def _take_one(self, lane: LaneState, now: datetime) -> list[Request]:
        try:
            return self._take([lane], now)
        except (*PASSING, leases.LostError):
            raise
        except Exception:
            log.exception("an endpoint cannot be served", endpoint=_public_id(lane.pk))
        lane.look_at = now + PUT_ASIDE
        return []

    def _take(self, lanes: Sequence[LaneState], now: datetime) -> list[Request]:
        with transaction.atomic():
            leases.hold(self._shift)
            endpoints = _endpoints([lane.pk for lane in lanes])
            self._end_waiting(endpoints.values())
            due = self._choose(self._allot(lanes, endpoints, now), now)
            claimed = self._claim(due)
            bodies = _bodies(claimed)
            parents = tracing.parents({it.pk: it.event_pk for it in claimed})
            theirs = {head.lane: endpoints[head.lane] for head in claimed}
            signing = signers(list(theirs.values()), now)
            made = [
                _request(it, theirs[it.lane], signing[it.lane], bodies[it.event_pk])
                for it in claimed
            ]
        for head in claimed:
            self._open_claim(head, endpoints[head.lane])
        self._keep_pace(claimed)
        return tracing.trace(made, parents)

    def give_back_unheard(self, *, settling: Iterable[int]) -> int:
        """Give back what the database holds for us but never told us; return how many.

        That is a claim whose commit went unconfirmed: its requests were never made.
        """
        held = set(
            Delivery.objects.held_by(self._shift.pk).values_list("pk", flat=True)
        )
        unheard = held.difference(self._open, settling)
        return Delivery.objects.unclaim(list(unheard), claim=self._shift.pk)

    def _end_waiting(self, endpoints: Iterable[Endpoint]) -> None:
        for endpoint in endpoints:
            if reason := endpoint.ends_waiting:
                Delivery.objects.waiting().filter(endpoint=endpoint).fail(error=reason)

    def _allot(
        self,
        lanes: Sequence[LaneState],
        endpoints: Mapping[int, Endpoint],
        now: datetime,
    ) -> list[Wanted]:
        """Return how much each of the lanes that may claim now is to claim."""
        left, allotted = MAX_CLAIMED - len(self), []
        exempt = self._network.exempts([lane.pk for lane in lanes], now)
        for lane in lanes:
            endpoint = endpoints.get(lane.pk)
            if endpoint is None or not _is_served(endpoint):
                lane.look_at = None  # whoever makes it receive again rings
                continue
            room = min(lane.allow(endpoint, now), left)
            if self._network.is_offline and self._is_held(endpoint):
                lane.held_until = now + SECOND
                room = min(room, lane.pk == exempt)
            left -= room
            if room:
                allotted.append(Wanted(lane.pk, room, endpoint.in_order))
        return allotted

    def _is_held(self, endpoint: Endpoint) -> bool:
        reach = reach_of(endpoint)
        return self._network.holds(endpoint.owner, endpoint.url, reach)

    def _choose(self, wanted: Sequence[Wanted], now: datetime) -> list[Head]:
        """Return the deliveries to claim, and set when each lane is looked at next."""
        room, budget = {it.lane: it.room for it in wanted}, MAX_BYTES - self._bytes
        due: list[Head] = []
        for pk in room:
            self._lanes[pk].look_at = None
        for head in heads(wanted, now):
            if head.lane not in room:
                continue  # behind one that is not for now
            if head.later or room[head.lane] == 0 or budget <= 0:
                self._lanes[head.lane].expect(head.later or now)
                del room[head.lane]
                continue
            room[head.lane] -= 1
            budget -= head.size
            due.append(head)
        return due

    def _claim(self, due: Sequence[Head]) -> list[Head]:
        pks = [head.pk for head in due]
        if Delivery.objects.claim(pks, claim=self._shift.pk) == len(pks):
            return list(due)
        # Somebody ended some of them in the meantime.
        claimed = Delivery.objects.claimed(pks, claim=self._shift.pk)
        mine = set(claimed.values_list("pk", flat=True))
        return [head for head in due if head.pk in mine]

    def _keep_pace(self, claimed: Sequence[Head]) -> None:
        """Note what counts against a rate, from now on: the commit may have taken its time."""
        now = timezone.now()
        for pk, count in Counter(head.lane for head in claimed).items():
            if pace := self._lanes[pk].pace:
                pace.note(count, now)

    def _open_claim(self, head: Head, endpoint: Endpoint) -> None:
        self._open[head.pk] = Claim(head, endpoint, profiles.get(endpoint.profile))
        self._bytes += head.size
        self._lanes[head.lane].claimed += 1


def _public_id(pk: int) -> str | None:
    ids = Endpoint.objects.filter(pk=pk).values_list("public_id", flat=True)
    return ids.first()


def _is_served(endpoint: Endpoint) -> bool:
    return endpoint.is_receiving and profiles.get(endpoint.profile).enabled


def _endpoints(pks: Sequence[int]) -> dict[int, Endpoint]:
    # Read anew for every claim: a changed url, a new secret or a deletion counts at once.
    rows = Endpoint.objects.filter(among(pks))
    return {it.pk: it for it in rows.defer("event_types", "description")}


def _bodies(heads: Sequence[Head]) -> dict[int, Body]:
    rows = Event.objects.filter(among({head.event_pk for head in heads}))
    return {
        pk: Body(public_id, event_type, bytes(body))
        for pk, public_id, event_type, body in rows.values_list(
            "pk", "public_id", "type", "body"
        )
    }


def _request(head: Head, endpoint: Endpoint, signer: Signer, event: Body) -> Request:
    return Request(
        key=head.pk,
        delivery_id=head.public_id,
        lane=head.lane,
        limit=endpoint.in_flight,
        at_once=endpoint.rate_per_second is not None,
        url=endpoint.url,
        body=event.bytes,
        sign=partial(signer.headers, head.public_id, event),
        timeout_s=profiles.get(endpoint.profile).timeout_s,
        reach=reach_of(endpoint),
    )
