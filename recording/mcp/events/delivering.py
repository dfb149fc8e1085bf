"""Delivery of MCP Events by the engine: which subscriptions get an event, and what is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import orjson
from django.db.models import OuterRef, Subquery
from django.utils import timezone

from recording.ids import row_id
from recording.mcp.events import clients
from recording.mcp.events.arguments import Arguments
from recording.mcp.events.cursors import Position
from recording.mcp.events.occurrences import Stored, Subject, envelope, parsed
from recording.models import EventSubscription
from recording.webhooks import EVENTS_PROFILE, SUMMARY_COMPLETED
from webhooks_core import publishing
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.profiles import Prepared, Sending

TERMINATED = "mcp.terminated"
# What a delivery says of which the subscription is over; nothing was sent.
ENDED = "the subscription has ended"
NOT_CONNECTED = "the application or the account has no access any more"


def publish(event: Event, data: Mapping[str, Any]) -> None:
    """Create the deliveries of an event that was just published, in its transaction."""
    if event.type != SUMMARY_COMPLETED:
        return
    live = EventSubscription.objects.live(timezone.now()).filter(
        account=row_id(event.owner), name=event.type
    )
    matching = [
        pk
        for pk, sent in live.order_by("pk").values_list("pk", "arguments")
        if read(sent).match(data)
    ]
    if matching:
        # Not by a join: without statistics PostgreSQL compares all rows with all.
        endpoints = Endpoint.objects.of(EVENTS_PROFILE, event.owner).subscribed()
        subscribed = set(endpoints.values_list("pk", flat=True))
        publishing.deliver(event, [pk for pk in matching if pk in subscribed])


def read(sent: Mapping[str, Any]) -> Arguments:
    """Return stored arguments: they were checked when they came."""
    return _read(orjson.dumps(sent))


@lru_cache(maxsize=512)
def _read(sent: bytes) -> Arguments:
    return Arguments.read(orjson.loads(sent))


@dataclass(frozen=True, slots=True)
class Watermark:
    """The first event of an endpoint that is neither delivered nor given up."""

    event: int
    created_at: datetime

    def position(self, account: int, *, delivered: int = 0) -> Position:
        """Return the position before it, or behind it if it is the one that is delivered."""
        event = self.event if delivered == self.event else self.event - 1
        return Position(account, event, self.created_at)


def watermarks(endpoints: Iterable[int]) -> dict[int, Watermark]:
    """Return the watermarks of the endpoints that have pending deliveries."""
    pending = Delivery.objects.pending().filter(endpoint=OuterRef("pk"))
    first = pending.exclude(event__type=TERMINATED).order_by("event", "pk")
    rows = Endpoint.objects.filter(pk__in=endpoints).annotate(
        first=Subquery(first.values("event")[:1]),
        first_at=Subquery(first.values("event__created_at")[:1]),
    )
    found = rows.values_list("pk", "first", "first_at")
    return {pk: Watermark(event, at) for pk, event, at in found if event is not None}


def prepare(sendings: Sequence[Sending]) -> dict[int, Prepared | str]:
    """Return what is sent by these attempts, or why nothing is; called for each claim.

    Access is checked here again: what the account has revoked meanwhile gets nothing.
    """
    endpoints = {sending.endpoint for sending in sendings}
    rows = EventSubscription.objects.in_bulk(endpoints)
    marks = watermarks(endpoints)
    pairs = {(row.account_id, row.client) for row in rows.values()}
    connected, now = clients.connected(pairs), timezone.now()
    prepared: dict[int, Prepared | str] = {}
    for sending in sendings:
        row = rows.get(sending.endpoint)
        if row is None:
            prepared[sending.delivery] = ENDED
        elif sending.event_type == TERMINATED:
            prepared[sending.delivery] = Prepared(sending.body, headers(row))
        elif not row.is_live(now):
            prepared[sending.delivery] = ENDED
        elif (row.account_id, row.client) not in connected:
            prepared[sending.delivery] = NOT_CONNECTED
        else:
            # The delivery itself is pending, unless another process has just ended it.
            mark = marks.get(sending.endpoint) or Watermark(sending.event, now)
            position = mark.position(row.account_id, delivered=sending.event)
            body = _body(row, sending, position.cursor())
            prepared[sending.delivery] = Prepared(body, headers(row))
    return prepared


def headers(subscription: EventSubscription) -> dict[str, str]:
    return {"X-MCP-Subscription-Id": subscription.subscription_id}


def _body(row: EventSubscription, sending: Sending, cursor: str) -> bytes:
    occurrence = _occurrence(row.name, sending.body, orjson.dumps(row.arguments))
    return occurrence[:-1] + b',"cursor":' + orjson.dumps(cursor) + b"}"


@lru_cache(maxsize=16)
def _occurrence(name: str, body: bytes, sent: bytes) -> bytes:
    """Return an occurrence; many subscriptions with equal arguments get the same one."""
    stored, arguments = parsed(body), _read(sent)
    data = arguments.shape(stored["data"])
    return orjson.dumps(envelope(name, stored) | {"data": data})


def replay(subscription: EventSubscription, window: Sequence[Stored]) -> None:
    """Create the deliveries of stored events for a new subscription, in its transaction."""
    subject = Subject(
        subscription.account_id, subscription.name, read(subscription.arguments)
    )
    pks = [stored.pk for stored in window if subject.matches(stored)]
    for event in Event.objects.filter(pk__in=pks).defer("body").order_by("pk"):
        publishing.deliver(event, [subscription.endpoint_id])
