"""The search in an owner's deliveries: by state, type, event, time and answer, page after page.

A page costs the same number of queries, whatever its filter. Failed and pending deliveries, those
by hand, one event and rare event types have an index. For all else a page reads SEARCHED deliveries
at most: it may have few rows or none, and its cursor goes on behind those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import chain

from django.db.models import Count, OuterRef, Q, QuerySet

from webhooks_core import ids, profiles
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.models.deliveries import superseded
from webhooks_core.models.lookups import IdList, among
from webhooks_core.owners import cursors, replays
from webhooks_core.owners.id_ranges import created_between
from webhooks_core.owners.replays import Resent

# Of a rarer type, the events are read first; of a more frequent one, the deliveries.
RARE = 1_000
SEARCHED = 3_000


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
    """Deliveries, newest first; `cursor` continues behind what was searched, "" at the end."""

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
    owners = endpoints.order_by().values_list("profile", "owner")
    for profile, owner, count in owners.annotate(count=Count("pk"))[:1]:
        indexed = _indexed(profile, owner, wanted)
        if before is not None:
            indexed = [rows.filter(pk__lt=before) for rows in indexed]
        rest = _not_indexed(wanted)
        most = max(SEARCHED // count, size + 1) if rest else size + 1
        pks, searched_to = _newest(endpoints, indexed, most)
        rows = Delivery.objects.filter(*rest, among(pks)).order_by("-pk")
        rows = rows.select_related("event", "endpoint").defer("event__body")
        return _page(list(rows[: size + 1]), size, searched_to)
    return FoundPage([], "")


def _page(rows: Sequence[Delivery], size: int, searched_to: int) -> FoundPage:
    shown = rows[:size]
    marks = replays.resent(shown)
    end = f"{searched_to:x}" if searched_to else ""
    cursor = cursors.behind([row.pk for row in rows], size) or end
    return FoundPage([Found(row, marks.get(row.pk)) for row in shown], cursor)


def _newest(
    endpoints: QuerySet[Endpoint], indexed: Sequence[QuerySet[Delivery]], most: int
) -> tuple[list[int], int]:
    """Return the newest ids, and the last of them; 0 if there are no older ones.

    Of each endpoint at most so many are read, from an index, whatever the others have.
    """
    own = [rows.filter(endpoint=OuterRef("pk")).order_by("-pk") for rows in indexed]
    columns = [IdList(rows.values("pk")[:most]) for rows in own]
    if not columns:
        return [], 0
    lists = chain.from_iterable(endpoints.order_by().values_list(*columns))
    parts = [pks for pks in lists if pks]
    end = max((pks[-1] for pks in parts if len(pks) == most), default=0)
    return [pk for pks in parts for pk in pks if pk >= end], end


def _indexed(
    profile: str, owner: str, wanted: DeliveryFilter
) -> list[QuerySet[Delivery]]:
    """Return the deliveries in parts that an index finds: each may have more than what is wanted."""
    rows = Delivery.objects.all()
    if wanted.event_id:
        if not ids.is_id(wanted.event_id, profiles.get(profile).event_prefix):
            return []
        rows = rows.filter(event__public_id=wanted.event_id)
    if wanted.event_types:
        own = Event.objects.filter(profile=profile, owner=owner)
        own = own.filter(type__in=wanted.event_types)
        pks = list(own.order_by().values_list("pk", flat=True)[: RARE + 1])
        if len(pks) <= RARE:
            rows = rows.filter(among(pks, of="event_id"))
    bounds = created_between(Delivery, wanted.since, wanted.until, profile=profile)
    parts: list[QuerySet[Delivery]] = [bounds.of(rows)]
    if bounds.before is not None:
        # What is by hand may be long after its event.
        by_hand = rows.filter(~Q(trigger=Delivery.Trigger.EVENT))
        parts.append(by_hand.filter(pk__gte=bounds.before))
    statuses = _statuses(wanted)
    if Delivery.Status.DELIVERED in statuses:
        return parts
    return [part.filter(status=status) for part in parts for status in statuses]


def _not_indexed(wanted: DeliveryFilter) -> list[Q]:
    """Return the conditions for which deliveries are read one after the other."""
    conditions = [
        Q(event__created_at__gte=wanted.since) if wanted.since else None,
        Q(event__created_at__lt=wanted.until) if wanted.until else None,
        Q(event__type__in=wanted.event_types) if wanted.event_types else None,
        _answered(wanted.status_class) if wanted.status_class else None,
    ]
    statuses = _statuses(wanted)
    if statuses != _ALL and Delivery.Status.DELIVERED in statuses:
        conditions.append(Q(status__in=statuses))
    failed = {State.FAILED, State.FAILED_UNDELIVERED} & wanted.states
    if failed == {State.FAILED_UNDELIVERED}:
        conditions.append(~Q(status=Delivery.Status.FAILED) | Q(~superseded()))
    return [condition for condition in conditions if condition is not None]


_ALL = frozenset(Delivery.Status)
_STATUSES = {
    State.PENDING: Delivery.Status.PENDING,
    State.DELIVERED: Delivery.Status.DELIVERED,
    State.FAILED: Delivery.Status.FAILED,
    State.FAILED_UNDELIVERED: Delivery.Status.FAILED,
}


def _statuses(wanted: DeliveryFilter) -> frozenset[Delivery.Status]:
    """Return the statuses that the states and the answer allow: by a 2xx, a delivery is delivered."""
    statuses = frozenset(_STATUSES[state] for state in wanted.states) or _ALL
    if wanted.status_class is None:
        return statuses
    by_success = frozenset({Delivery.Status.DELIVERED})
    is_success = wanted.status_class is StatusClass.SUCCESS
    return statuses & (by_success if is_success else _ALL - by_success)


def _answered(status_class: StatusClass) -> Q:
    """Return the condition on the latest response: until a 2xx, the error names its status."""
    if status_class is StatusClass.SUCCESS:
        return Q(status=Delivery.Status.DELIVERED)
    if status_class is StatusClass.NONE:
        return ~Q(last_error__startswith="HTTP ")
    return Q(last_error__startswith=f"HTTP {status_class[0]}")
