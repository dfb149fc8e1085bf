"""Events that callers publish: which types they may, and who gets them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.db import transaction

from gateway import configuration, events
from gateway.chat.core import json_numbers
from gateway.errors import UnprocessableError
from gateway.events import Origin
from gateway.idempotency import Outcome, RepeatableRequest
from gateway.webhooks import PROFILE
from webhooks_core import profiles, publishing
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.profiles import EventType

MAX_EVENTS = 100


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event of a caller; `id` is the name that it has there, "" without one.

    `path` is its place in the request: "" for a single event.
    """

    type: str
    data: Mapping[str, Any]
    id: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """The id of an event, whether it was published before, and the subscriptions that get it.

    In a dry run a new event has no id.
    """

    id: str | None
    duplicate: bool
    subscriptions: list[str]


def publishable() -> Mapping[str, EventType]:
    """Return the types that callers may publish, by their names."""
    configured = configuration.current().webhooks
    known = profiles.get(PROFILE).event_types
    names = [*configured.publishable, *(kind.name for kind in configured.event_types)]
    return {name: known[name] for name in names}


def publish_once(
    *,
    origin: Origin,
    new: Sequence[NewEvent],
    request: RepeatableRequest | None,
    dry_run: bool = False,
) -> list[Published]:
    """Publish events, or return what they became when the request came before.

    A dry run does the same in a transaction that is rolled back.
    """

    def respond() -> dict[str, Any]:
        return {
            "events": [asdict(each) for each in publish_all(origin=origin, new=new)]
        }

    with transaction.atomic():
        outcome = request.once(respond) if request else Outcome(respond())
        if dry_run:
            transaction.set_rollback(True)
    published = [Published(**each) for each in outcome.body["events"]]
    if outcome.is_replayed:
        return [replace(each, duplicate=True) for each in published]
    if dry_run:
        return [
            each if each.duplicate else replace(each, id=None) for each in published
        ]
    return published


def publish_all(*, origin: Origin, new: Sequence[NewEvent]) -> list[Published]:
    """Publish events in their order, all or nothing.

    An event with the `id` of a kept one is that one, published before. Raises 422 if their types
    or data differ.
    """
    with transaction.atomic():
        if len(new) > 1:
            publishing.lock_owner(profile=PROFILE, owner=origin.tenant)
        return [_publish(origin, event) for event in new]


def _publish(origin: Origin, new: NewEvent) -> Published:
    published = publishing.publish_to(
        profile=PROFILE,
        owner=origin.tenant,
        event_type=new.type,
        data=events.exactly(new.data),
        metadata=origin.metadata,
        dedupe_key=f"publisher:{new.id}" if new.id else None,
    )
    event = published.event
    if published.is_new:
        rows = Endpoint.objects.filter(pk__in=published.endpoint_ids)
        names = rows.order_by("pk").values_list("public_id", flat=True)
        return Published(event.public_id, duplicate=False, subscriptions=list(names))
    if not _is_same(event, new):
        raise UnprocessableError(
            f"{new.path}id: another event with this id was published before."
        )
    return Published(event.public_id, duplicate=True, subscriptions=_receivers(event))


def _is_same(event: Event, new: NewEvent) -> bool:
    stored = json_numbers.loads(bytes(event.body))["data"]
    return event.type == new.type and _written(stored) == _written(new.data)


def _written(data: Mapping[str, Any]) -> bytes:
    """Return the same bytes for equal data: to Python, 1 is true, and 1.0, too."""
    return json_numbers.dumps(data, sort_keys=True)


def _receivers(event: Event) -> list[str]:
    rows = Delivery.objects.filter(event=event, trigger=Delivery.Trigger.EVENT)
    names = rows.order_by("endpoint").values_list("endpoint__public_id", flat=True)
    return list(names)
