"""publish(): an event and its deliveries, stored in the caller's own transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from django.db import transaction
from django.utils import timezone

from webhooks_core import filters, ids, profiles, times
from webhooks_core.database.clock import clock
from webhooks_core.dispatch import notify
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.profiles import EventContext, NewEvent, WebhookProfile


class UnknownEventTypeError(ValueError):
    """The profile has no such event type."""


def publish(
    *,
    profile: str,
    owner: str,
    event_type: str,
    data: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
) -> Event:
    """Store an event and a delivery for every endpoint that receives it; return the event.

    Joins the caller's transaction: both commit or neither does. Nothing is sent before the
    commit, and a failure to notify the dispatcher does not fail the caller.

    Raises UnknownEventTypeError, or TypeError if `data` is not JSON.
    """
    webhook_profile = profiles.get(profile)
    if event_type not in webhook_profile.event_types:
        raise UnknownEventTypeError(event_type)
    with transaction.atomic():
        new = NewEvent(event_type, data, metadata or {})
        event = _store(webhook_profile, owner, new)
        deliver(event, _receiving(webhook_profile, event))
        if webhook_profile.published is not None:
            webhook_profile.published(event, data)
    return event


def publish_test(endpoint: Endpoint, ping: NewEvent) -> Event:
    """Store a test event for one endpoint with any event types; return the event.

    The event is stored in any case; a delivery only if the endpoint is subscribed. Raises
    Endpoint.DoesNotExist if the endpoint was deleted, for example with its account.
    """
    profile = profiles.get(endpoint.profile)
    with transaction.atomic():
        rows = Endpoint.objects.filter(deleted_at=None)
        endpoint = rows.select_for_update(no_key=True).get(pk=endpoint.pk)
        event = _store(profile, endpoint.owner, ping)
        if endpoint.is_receiving:
            at = Delivery.objects.front(endpoint)
            deliver(event, [endpoint.pk], trigger=Delivery.Trigger.TEST, at=at)
    return event


def deliver(
    event: Event,
    endpoint_ids: Sequence[int],
    *,
    trigger: Delivery.Trigger = Delivery.Trigger.EVENT,
    at: datetime | None = None,
) -> None:
    """Create the deliveries of an event for these endpoints, due now or at a time."""
    if not endpoint_ids:
        return
    prefix, due = profiles.get(event.profile).delivery_prefix, at or clock.recent()
    Delivery.objects.bulk_create(
        Delivery(
            public_id=ids.public_id(prefix),
            event=event,
            endpoint_id=pk,
            trigger=trigger,
            next_attempt_at=due,
        )
        for pk in endpoint_ids
    )
    notify.notify_on_commit(endpoint_ids)


def _store(profile: WebhookProfile, owner: str, new: NewEvent) -> Event:
    now, public_id = timezone.now(), ids.public_id(profile.event_prefix)
    context = EventContext(
        id=public_id,
        type=new.type,
        owner=owner,
        created_at=times.iso(now),
        data=new.data,
        metadata=new.metadata,
    )
    body = orjson.dumps(profile.envelope(context))
    return Event.objects.create(
        public_id=public_id,
        profile=profile.name,
        owner=owner,
        type=new.type,
        body=body,
        size=len(body),
        created_at=now,
    )


def _receiving(profile: WebhookProfile, event: Event) -> list[int]:
    """Return the endpoints that receive an event, ascending."""
    if not profile.enabled:
        return []
    rows = Endpoint.objects.of(profile.name, event.owner).receiving().order_by("pk")
    matching = {
        pk: filter_
        for pk, types, filter_ in rows.values_list("pk", "event_types", "filter")
        if profile.matches(types, event.type)
    }
    if not any(matching.values()):
        return list(matching)
    envelope = orjson.loads(event.body)
    return [
        pk
        for pk, filter_ in matching.items()
        if not filter_ or filters.from_json(orjson.dumps(filter_).decode())(envelope)
    ]
