"""Events that callers publish: which types they may, and who gets them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from gateway import configuration, events
from gateway.events import Origin
from gateway.webhooks import PROFILE
from webhooks_core import profiles
from webhooks_core.models import Delivery
from webhooks_core.profiles import EventType


def publishable() -> Mapping[str, EventType]:
    """Return the types that callers may publish, by their names."""
    configured = configuration.current().webhooks
    known = profiles.get(PROFILE).event_types
    names = [*configured.publishable, *(kind.name for kind in configured.event_types)]
    return {name: known[name] for name in names}


def publish(
    *, origin: Origin, event_type: str, data: Mapping[str, Any]
) -> dict[str, Any]:
    """Publish an event; return its `id`, `duplicate` and the `subscriptions` that get it."""
    with transaction.atomic():
        event = events.publish(
            origin=origin, event_type=event_type, data=events.exactly(data)
        )
        receivers = Delivery.objects.filter(event=event).order_by("endpoint")
        names = list(receivers.values_list("endpoint__public_id", flat=True))
    return {"id": event.public_id, "duplicate": False, "subscriptions": names}
