"""Resend: one delivery, or all that failed or was missed in a time.

A resend is a new delivery of a stored event, with the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from itertools import islice

import orjson
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, QuerySet, Value
from django.db.models.functions import Least

from webhooks_core import changes, filters, profiles
from webhooks_core.changes import Actor
from webhooks_core.database.clock import clock
from webhooks_core.database.statements import among
from webhooks_core.dispatch import notify
from webhooks_core.errors import GoneError
from webhooks_core.ids import public_id
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.owners.repairs import NotReceivingError

# One call queues at most so many; another call goes on. Their due times lie so far apart that
# live events go between.
AT_ONCE = 5_000
PER_SECOND = 50


class Selection(StrEnum):
    """What to resend: what has failed, or what was published while nothing could be sent."""

    FAILED = "failed"
    MISSED = "missed"


class RemovedError(GoneError):
    """The event was removed for its age."""


def resend(delivery: Delivery, *, by: Actor) -> Delivery:
    """Send the event of a delivery again, as the next request of its endpoint.

    Returns the delivery that is sent: while one is pending for both, it is that one, since two
    would send the event twice. Raises NotReceivingError, or RemovedError.
    """
    with transaction.atomic():
        endpoint = _locked(delivery.endpoint_id)
        if not _kept([delivery.event_id]):
            raise RemovedError
        pair = Delivery.objects.filter(event=delivery.event_id, endpoint=endpoint)
        at = Delivery.objects.front(endpoint)
        changes.record(endpoint.public_id, "resent", by=by, delivery=delivery.public_id)
        if pending := pair.pending().order_by("pk").last():
            waiting = Delivery.objects.waiting().filter(pk=pending.pk)
            waiting.update(next_attempt_at=Least("next_attempt_at", Value(at)))
            notify.notify_on_commit([endpoint.pk], at=at)
            return pending
        last = pair.aggregate(last=Max("replay_number"))["last"]
        return _create(endpoint, [(delivery.event_id, last + 1, at)])[0]


def resend_since(
    endpoint: Endpoint,
    selection: Selection,
    *,
    since: datetime,
    until: datetime | None = None,
    by: Actor,
) -> int:
    """Queue at most AT_ONCE events of a selection, the oldest first; return how many.

    Raises NotReceivingError.
    """
    with transaction.atomic():
        endpoint = _locked(endpoint.pk)
        found = dict(_candidates(endpoint, selection, since, until))
        start, pause = clock.recent(), timedelta(seconds=1 / PER_SECOND)
        rows = [
            (event, found[event], start + place * pause)
            for place, event in enumerate(_kept(list(found)))
        ]
        _create(endpoint, rows)
        if rows:
            name = f"resent {selection}"
            changes.record(endpoint.public_id, name, by=by, events=len(rows))
        if selection is Selection.MISSED and len(found) < AT_ONCE:
            _forget_outage(endpoint, since, until)
    return len(rows)


def _forget_outage(endpoint: Endpoint, since: datetime, until: datetime | None) -> None:
    """Note that nothing is missed any more of the time in which nothing could be sent."""
    start, end = endpoint.disabled_at, endpoint.enabled_at
    if start and end and since <= start and (until is None or until >= end):
        rows = Endpoint.objects.filter(pk=endpoint.pk, disabled_at=start)
        rows.update(disabled_at=None, enabled_at=None)


def count(
    endpoint: Endpoint,
    selection: Selection,
    *,
    since: datetime,
    until: datetime | None = None,
) -> int:
    """Return how many events resend_since() would queue: AT_ONCE at most."""
    return len(_candidates(endpoint, selection, since, until))


def _locked(pk: int) -> Endpoint:
    """Lock an endpoint, so that resends of it follow each other. Raises NotReceivingError."""
    rows = Endpoint.objects.defer("custom_headers").select_for_update(no_key=True)
    endpoint = rows.filter(pk=pk).first()
    if endpoint is None or not endpoint.is_receiving:
        raise NotReceivingError
    return endpoint


def _kept(events: Sequence[int]) -> list[int]:
    """Lock events, so that retention keeps them; return those that are still there, by age."""
    rows = Event.objects.filter(among(events)).order_by("pk")
    return list(rows.select_for_update(no_key=True).values_list("pk", flat=True))


def _create(
    endpoint: Endpoint, rows: Sequence[tuple[int, int, datetime]]
) -> list[Delivery]:
    """Create deliveries of events, each with its number and its due time."""
    prefix = profiles.get(endpoint.profile).delivery_prefix
    created = Delivery.objects.bulk_create(
        Delivery(
            public_id=public_id(prefix),
            event_id=event,
            endpoint=endpoint,
            trigger=Delivery.Trigger.MANUAL,
            replay_number=number,
            next_attempt_at=at,
        )
        for event, number, at in rows
    )
    if rows:
        notify.notify_on_commit([endpoint.pk], at=rows[0][2])
    return created


def _candidates(
    endpoint: Endpoint, selection: Selection, since: datetime, until: datetime | None
) -> list[tuple[int, int]]:
    """Return the events of a selection, oldest first, each with the number of its next delivery."""
    if selection is Selection.MISSED:
        events = islice(_missed(endpoint, since, until), AT_ONCE)
        return [(event, 0) for event in events]
    # A delivery is not older than its event, and the index of failed ones has no join.
    rows = Delivery.objects.undelivered().filter(
        endpoint=endpoint, created_at__gte=since, event__created_at__gte=since
    )
    if until:
        rows = rows.filter(event__created_at__lt=until)
    pairs = rows.order_by("event").values_list("event", "replay_number")
    return [(event, number + 1) for event, number in pairs[:AT_ONCE]]


def _missed(
    endpoint: Endpoint, since: datetime, until: datetime | None
) -> Iterator[int]:
    """Yield the events that an endpoint would receive today and has no delivery of, by age."""
    profile = profiles.get(endpoint.profile)
    matches = partial(profile.matches, endpoint.event_types)
    rows = Event.objects.filter(
        ~Exists(Delivery.objects.filter(event=OuterRef("pk"), endpoint=endpoint)),
        profile=endpoint.profile,
        owner=endpoint.owner,
        type__in=list(filter(matches, profile.event_types)),
        created_at__gte=max(since, endpoint.created_at),
    )
    if until:
        rows = rows.filter(created_at__lt=until)
    return _passing(endpoint, rows.order_by("pk"))


def _passing(endpoint: Endpoint, rows: QuerySet[Event]) -> Iterator[int]:
    """Yield the events that pass the filter of an endpoint."""
    if endpoint.filter is None:
        yield from rows.values_list("pk", flat=True)[:AT_ONCE]
        return
    is_wanted = filters.compiled(endpoint.filter)
    for pk, body in rows.values_list("pk", "body").iterator(chunk_size=100):
        if is_wanted(orjson.loads(bytes(body))):
            yield pk
