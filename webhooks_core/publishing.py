"""publish(): an event and its deliveries, stored in the caller's own transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from django.db import IntegrityError, transaction
from django.utils import timezone

from webhooks_core import formats, profiles, tracing
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.profiles import EventContext, WebhookProfile
from webhooks_core.worker import notify

# More deliveries than this are made by the drain, not by the caller.
FANOUT_AT_ONCE = 500


class UnknownEventTypeError(ValueError):
    """The profile has no such event type."""


def publish(
    *,
    profile: str,
    owner: str,
    event_type: str,
    data: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
    dedupe_key: str | None = None,
) -> Event:
    """Store an event and a delivery for every endpoint that receives it; return the event.

    Joins the caller's transaction: both commit or neither does. Nothing is sent before the
    commit, and nothing that happens to the wake-up can fail the caller. A second event with
    the same `dedupe_key` (per profile and owner) is the first one, returned again.

    Raises UnknownEventTypeError, or TypeError when `data` is not JSON.
    """
    dialect = profiles.get(profile)
    if event_type not in dialect.event_types:
        raise UnknownEventTypeError(event_type)
    with tracing.publishing(profile, event_type), transaction.atomic():
        event, is_new = _store(
            dialect,
            owner=owner,
            event_type=event_type,
            data=data,
            metadata=metadata or {},
            dedupe_key=dedupe_key,
        )
        if is_new and dialect.enabled:
            _fan_out(event, dialect)
    return event


def publish_test(
    endpoint: Endpoint,
    *,
    event_type: str,
    data: Mapping[str, Any],
    **metadata: str,
) -> Event:
    """Store a test event for one endpoint, whatever its event list; return the event.

    The event is stored in any case; a delivery only when the endpoint is subscribed.
    """
    dialect = profiles.get(endpoint.profile)
    with tracing.publishing(dialect.name, event_type), transaction.atomic():
        event, _ = _store(
            dialect,
            owner=endpoint.owner,
            event_type=event_type,
            data=data,
            metadata=metadata,
        )
        if endpoint.is_subscribed:
            deliver(event, [endpoint.pk], trigger=Delivery.Trigger.TEST)
    return event


def deliver(
    event: Event,
    endpoint_ids: Sequence[int],
    *,
    trigger: Delivery.Trigger = Delivery.Trigger.EVENT,
) -> None:
    """Make the deliveries of an event for these endpoints, due now."""
    prefix, now = profiles.get(event.profile).delivery_prefix, timezone.now()
    Delivery.objects.bulk_create(
        Delivery(
            public_id=formats.public_id(prefix),
            event=event,
            endpoint_id=endpoint_id,
            next_attempt_at=now,
            created_at=now,
            trigger=trigger,
        )
        for endpoint_id in endpoint_ids
    )
    if endpoint_ids:
        notify.notify_on_commit(endpoint_ids)


def _store(
    dialect: WebhookProfile,
    *,
    owner: str,
    event_type: str,
    data: Mapping[str, Any],
    metadata: Mapping[str, str],
    dedupe_key: str | None = None,
) -> tuple[Event, bool]:
    if known := _known(dialect.name, owner, dedupe_key):
        return known, False
    now, public_id = timezone.now(), formats.public_id(dialect.event_prefix)
    context = EventContext(
        id=public_id,
        type=event_type,
        owner=owner,
        created_at=formats.iso(now),
        data=data,
        metadata=metadata,
    )
    body = orjson.dumps(dialect.envelope(context))
    event = Event(
        public_id=public_id,
        profile=dialect.name,
        owner=owner,
        type=event_type,
        body=body,
        size=len(body),
        created_at=now,
        dedupe_key=dedupe_key,
    )
    if dedupe_key is not None:
        return _save_or_known(event)
    _insert(event)
    return event, True


def _insert(event: Event) -> None:
    event.save(force_insert=True)
    tracing.remember(event)


def _save_or_known(event: Event) -> tuple[Event, bool]:
    try:
        with transaction.atomic():
            _insert(event)
    except IntegrityError:
        # Two publishers with one key at once: the other was first.
        if known := _known(event.profile, event.owner, event.dedupe_key):
            return known, False
        raise
    return event, True


def _known(profile: str, owner: str, dedupe_key: str | None) -> Event | None:
    if dedupe_key is None:
        return None
    return Event.objects.filter(
        profile=profile, owner=owner, dedupe_key=dedupe_key
    ).first()


def _fan_out(event: Event, dialect: WebhookProfile) -> None:
    matching = _matching(event, dialect, after=0)
    now, later = matching[:FANOUT_AT_ONCE], matching[FANOUT_AT_ONCE:]
    if later:
        event.fanout_after = now[-1]
        event.fanout_until = later[-1]
        event.save(update_fields=["fanout_after", "fanout_until"])
        now += _in_order(event, later)
    deliver(event, now)


def _in_order(event: Event, endpoint_ids: Sequence[int]) -> list[int]:
    """Return those that want their events in order: no later one may be there before this."""
    ordered = Endpoint.objects.of(event.profile, event.owner).filter(in_order=True)
    wanted = set(ordered.values_list("pk", flat=True))
    return [pk for pk in endpoint_ids if pk in wanted]


def _matching(event: Event, dialect: WebhookProfile, *, after: int) -> list[int]:
    """Return the ids of the endpoints that receive an event, ascending."""
    rows = (
        Endpoint.objects.of(event.profile, event.owner)
        .subscribed()
        .filter(pk__gt=after)
        .order_by("pk")
        .values_list("pk", "event_types")
    )
    if event.fanout_until is not None:
        rows = rows.filter(pk__lte=event.fanout_until)
    return [pk for pk, types in rows if dialect.matches(types, event.type)]


def continue_fan_outs(*, limit: int = 1) -> int:
    """Make deliveries that publish() left for later; return how many events went on."""
    unfinished = Event.objects.fanning_out().order_by("pk")[:limit]
    return sum(_continue(event) for event in unfinished)


def _continue(event: Event) -> bool:
    with transaction.atomic():
        # Another process may be at the same event: whoever moves the mark makes the rows.
        matching = _matching(
            event, profiles.get(event.profile), after=event.fanout_after or 0
        )
        part = matching[:FANOUT_AT_ONCE]
        rest = len(matching) > FANOUT_AT_ONCE
        moved = Event.objects.filter(
            pk=event.pk, fanout_after=event.fanout_after
        ).update(
            fanout_after=part[-1] if rest else None,
            fanout_until=event.fanout_until if rest else None,
        )
        if moved:
            made = set(
                Delivery.objects.filter(event=event, endpoint__in=part).values_list(
                    "endpoint", flat=True
                )
            )
            deliver(event, [pk for pk in part if pk not in made])
    return bool(moved)
