"""The search in an owner's deliveries: by state, type, event, time and answer, page after page.

A page costs the same number of queries, whatever its filter. Each part of a filter that matches
few rows has an index: failed and pending deliveries, those by hand, events by type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from heapq import nlargest
from itertools import chain

from django.db.models import OuterRef, Q, QuerySet

from webhooks_core import ids, profiles, replays
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.models.lookups import IdList, among
from webhooks_core.owners import cursors
from webhooks_core.owners.id_ranges import created_between
from webhooks_core.replays import Resent

MAX_PAGE = 100
# Of a rarer type, the events are read first; of a more frequent one, the deliveries.
RARE = 10_000


class State(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"
    FAILED_UNDELIVERED = "failed_undelivered"  # and the event has not arrived since


class StatusClass(StrEnum):
    """The first digit of the latest response's status; none where there was no response."""

    SUCCESS = "2xx"
    REDIRECT = "3xx"
    CLIENT_ERROR = "4xx"
    SERVER_ERROR = "5xx"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """Which deliveries: those that fit every part; without any, all of them.

    `since` and `until` are about the creation of the event; `until` is excluded.
    """

    states: frozenset[State] = frozenset()
    event_types: tuple[str, ...] = ()
    event_id: str = ""
    since: datetime | None = None
    until: datetime | None = None
    status_class: StatusClass | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A delivery with its event, without the body, and what became of it when it was resent."""

    delivery: Delivery
    resent: Resent | None


@dataclass(frozen=True, slots=True)
class FoundPage:
    """Deliveries, newest first; `cursor` continues behind them, "" after the last."""

    items: Sequence[Found]
    cursor: str


def search(
    endpoints: QuerySet[Endpoint],
    wanted: DeliveryFilter,
    *,
    cursor: str = "",
    size: int = 20,
) -> FoundPage:
    """Return a page of the deliveries of some endpoints: all of them have one owner.

    `cursor` is that of the page before. Raises ValueError for any other text.
    """
    before = cursors.position(cursor)
    owner = endpoints.order_by().values_list("profile", "owner").first()
    if owner is None:
        return FoundPage([], "")
    rows = _narrowed(*owner, wanted)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    ranges = _ranges(rows, wanted.until, owner[0])
    pks = _newest(endpoints, ranges, size + 1)
    shown = Delivery.objects.filter(among(pks[:size])).order_by("-pk")
    found = list(shown.select_related("event", "endpoint").defer("event__body"))
    marks = replays.resent(found)
    items = [Found(row, marks.get(row.pk)) for row in found]
    return FoundPage(items, cursors.behind(pks, size))


def _newest(
    endpoints: QuerySet[Endpoint], ranges: Sequence[QuerySet[Delivery]], most: int
) -> list[int]:
    """Return the newest ids: each range of an index per endpoint, whatever the others have."""
    own = [rows.filter(endpoint=OuterRef("pk")).order_by("-pk") for rows in ranges]
    columns = [IdList(rows.values("pk")[:most]) for rows in own]
    lists = chain.from_iterable(endpoints.order_by().values_list(*columns))
    return nlargest(most, chain.from_iterable(filter(None, lists)))


def _ranges(
    rows: QuerySet[Delivery], until: datetime | None, profile: str
) -> list[QuerySet[Delivery]]:
    """Return the rows in parts that an index finds: what is by hand may be long after its event."""
    before = created_between(Delivery, until=until, profile=profile).before
    if before is None:
        return [rows]
    by_hand = rows.filter(~Q(trigger=Delivery.Trigger.EVENT))
    return [rows.filter(pk__lt=before), by_hand.filter(pk__gte=before)]


def _narrowed(profile: str, owner: str, wanted: DeliveryFilter) -> QuerySet[Delivery]:
    rows = Delivery.objects.filter(_of_states(wanted.states))
    if State.FAILED_UNDELIVERED in wanted.states:
        others = wanted.states - {State.FAILED_UNDELIVERED}
        undelivered = Q(pk__in=Delivery.objects.undelivered().values("pk"))
        both = rows.filter(_of_states(others) | undelivered)
        rows = both if others else rows.undelivered()
    if wanted.event_id:
        if not ids.is_id(wanted.event_id, profiles.get(profile).event_prefix):
            return rows.none()
        rows = rows.filter(event__public_id=wanted.event_id)
    if wanted.event_types:
        rows = rows.filter(_of_types(profile, owner, wanted.event_types))
    if wanted.status_class:
        rows = rows.filter(_answered(wanted.status_class))
    return rows.filter(_created(wanted, profile))


_STATUSES = {
    State.PENDING: Delivery.Status.PENDING,
    State.DELIVERED: Delivery.Status.DELIVERED,
    State.FAILED: Delivery.Status.FAILED,
    State.FAILED_UNDELIVERED: Delivery.Status.FAILED,
}


def _of_states(states: frozenset[State]) -> Q:
    """Return the condition on the status, of one constant: then its partial index is used."""
    statuses = {_STATUSES[state] for state in states}
    if len(statuses) == 1:
        return Q(status=next(iter(statuses)))
    return Q(status__in=statuses) if statuses else Q()


def _of_types(profile: str, owner: str, event_types: Sequence[str]) -> Q:
    """Return the condition on types; of rare ones, on the events themselves."""
    own = Event.objects.filter(profile=profile, owner=owner, type__in=event_types)
    pks = list(own.order_by().values_list("pk", flat=True)[: RARE + 1])
    if len(pks) <= RARE:
        return Q(among(pks, of="event_id"))
    return Q(event__type__in=event_types)


def _answered(status_class: StatusClass) -> Q:
    """Return the condition on the latest response.

    A delivery is delivered by a 2xx; until then, or for good, its error names the status.
    """
    if status_class is StatusClass.SUCCESS:
        return Q(status=Delivery.Status.DELIVERED)
    others = Q(status__in=(Delivery.Status.PENDING, Delivery.Status.FAILED))
    if status_class is StatusClass.NONE:
        return others & ~Q(last_error__startswith="HTTP ")
    return others & Q(last_error__startswith=f"HTTP {status_class[0]}")


def _created(wanted: DeliveryFilter, profile: str) -> Q:
    """Return the condition on the event's time, with a bound on the delivery's id."""
    condition = Q()
    if wanted.since:
        first = created_between(Delivery, wanted.since, profile=profile).first
        condition &= Q(event__created_at__gte=wanted.since, pk__gte=first)
    if wanted.until:
        condition &= Q(event__created_at__lt=wanted.until)
    return condition
