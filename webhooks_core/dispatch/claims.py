"""Claiming: deliveries that are due become requests, committed before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from ipaddress import ip_network

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from webhooks_core import profiles
from webhooks_core.addresses import Network
from webhooks_core.dispatch.lanes import Lanes, LaneState, heads
from webhooks_core.models import Delivery, Endpoint, Event, Shift
from webhooks_core.profiles import Sending, WebhookProfile
from webhooks_core.transport import Request

MAX_CLAIMED = 1024
MAX_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Claim:
    """One attempt that this shift has taken upon itself; `number` counts from 1."""

    pk: int
    endpoint: Endpoint
    profile: WebhookProfile
    number: int
    tried: int
    size: int
    request: Request


class Claims:
    """All that a shift has claimed and not yet settled, bounded in number and bytes."""

    def __init__(self, shift: Shift, lanes: Lanes) -> None:
        self._shift = shift
        self._lanes = lanes
        self._open: dict[int, Claim] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, pk: int) -> bool:
        return pk in self._open

    def pop(self, pk: int) -> Claim:
        """Forget a claim that has been settled."""
        claim = self._open.pop(pk)
        self._bytes -= claim.size
        self._lanes[claim.request.lane].claimed -= 1
        return claim

    def take(self, now: datetime) -> list[Request]:
        """Claim what is due and fits; return the requests, which may be sent now."""
        lanes = self._lanes.due(now)
        if not lanes or self._bytes >= MAX_BYTES or len(self) >= MAX_CLAIMED:
            return []
        with transaction.atomic():
            endpoints = _endpoints([lane.pk for lane in lanes])
            self._end_waiting(endpoints.values())
            due = self._choose(self._allot(lanes, endpoints), now)
            claimed = self._claim(due)
            events = _events(claimed)
        return [
            self._open_claim(it, endpoints[it.endpoint_id], events[it.event_id])
            for it in claimed
        ]

    def _end_waiting(self, endpoints: Iterable[Endpoint]) -> None:
        for endpoint in endpoints:
            if reason := endpoint.ends_waiting:
                Delivery.objects.waiting().filter(endpoint=endpoint).fail(error=reason)

    def _allot(
        self, lanes: Sequence[LaneState], endpoints: Mapping[int, Endpoint]
    ) -> list[tuple[int, int]]:
        """Return (lane, number to claim) for the lanes that may claim now."""
        left, allotted = MAX_CLAIMED - len(self), []
        for lane in lanes:
            endpoint = endpoints[lane.pk]
            if not endpoint.is_receiving or not profiles.get(endpoint.profile).enabled:
                lane.look_at = None  # whoever makes it receive again rings
                continue
            room = min(lane.allow(endpoint.max_in_flight), left)
            left -= room
            if room:
                allotted.append((lane.pk, room))
        return allotted

    def _choose(
        self, wanted: Sequence[tuple[int, int]], now: datetime
    ) -> list[Delivery]:
        """Return the deliveries to claim, and set when each lane is looked at next."""
        room, budget, due = dict(wanted), MAX_BYTES - self._bytes, []
        for pk in room:
            self._lanes[pk].look_at = None
        for delivery in heads(wanted):
            lane = self._lanes[delivery.endpoint_id]
            at = delivery.next_attempt_at or now
            if at > now or room[lane.pk] == 0 or budget <= 0:
                lane.look_at = min(lane.look_at or at, at)
                continue
            room[lane.pk] -= 1
            budget -= delivery.size  # type: ignore[attr-defined] # selected by heads()
            due.append(delivery)
        return due

    def _claim(self, due: Sequence[Delivery]) -> list[Delivery]:
        pks = [delivery.pk for delivery in due]
        if Delivery.objects.claim(pks, claim=self._shift.pk) == len(pks):
            return list(due)
        # Somebody ended some of them in the meantime.
        mine = set(
            Delivery.objects.claimed(pks, claim=self._shift.pk).values_list(
                "pk", flat=True
            )
        )
        return [delivery for delivery in due if delivery.pk in mine]

    def _open_claim(
        self, delivery: Delivery, endpoint: Endpoint, event: Event
    ) -> Request:
        profile = profiles.get(endpoint.profile)
        request = _request(delivery, endpoint, event, profile)
        self._open[delivery.pk] = Claim(
            pk=delivery.pk,
            endpoint=endpoint,
            profile=profile,
            number=delivery.attempts + 1,
            tried=delivery.attempts + 1 - delivery.interruptions,
            size=event.size,
            request=request,
        )
        self._bytes += event.size
        self._lanes[endpoint.pk].claimed += 1
        return request


def _endpoints(pks: Sequence[int]) -> dict[int, Endpoint]:
    # Read anew for every claim: a changed url, a new secret or a deletion counts at once.
    rows = Endpoint.objects.filter(pk__in=pks).prefetch_related("endpointsecret_set")
    return {endpoint.pk: endpoint for endpoint in rows}


def _events(deliveries: Sequence[Delivery]) -> Mapping[int, Event]:
    return Event.objects.in_bulk({delivery.event_id for delivery in deliveries})


@lru_cache(maxsize=4)
def _networks(texts: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


def _request(
    delivery: Delivery, endpoint: Endpoint, event: Event, profile: WebhookProfile
) -> Request:
    networks = _networks(tuple(settings.WEBHOOK_ALLOWED_TARGETS))
    return Request(
        key=delivery.pk,
        lane=endpoint.pk,
        limit=endpoint.max_in_flight,
        url=endpoint.url,
        body=bytes(event.body),
        sign=partial(_headers, profile, endpoint, event, delivery.public_id),
        timeout_s=profile.timeout_s,
        reach=profile.url_policy.reach(
            endpoint.url, networks=networks if endpoint.trusted else ()
        ),
    )


def _headers(
    profile: WebhookProfile,
    endpoint: Endpoint,
    event: Event,
    delivery_id: str,
    timestamp: int,
) -> Mapping[str, str]:
    sending = Sending(
        event_id=event.public_id,
        event_type=event.type,
        delivery_id=delivery_id,
        timestamp=timestamp,
        body=bytes(event.body),
        secrets=endpoint.secrets(now=timezone.now()),
    )
    return {"Content-Type": "application/json", **profile.headers(sending)}
