"""Events that callers publish: which types they may, who gets them, and requests that are repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import orjson
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from gateway import configuration, events
from gateway.errors import UnprocessableError
from gateway.events import Origin
from gateway.models import IdempotencyKey
from gateway.webhooks import PROFILE
from webhooks_core import profiles
from webhooks_core.models import Delivery
from webhooks_core.profiles import EventType

KEPT_FOR = timedelta(days=1)


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
        event = events.publish(origin=origin, event_type=event_type, data=data)
        receivers = Delivery.objects.filter(event=event).order_by("endpoint")
        names = list(receivers.values_list("endpoint__public_id", flat=True))
    return {"id": event.public_id, "duplicate": False, "subscriptions": names}


def publish_once(
    key: str, *, origin: Origin, event_type: str, data: Mapping[str, Any]
) -> dict[str, Any]:
    """Publish an event and keep the result with its key for a day; or return what is kept.

    Both happen in one transaction. A concurrent request with the same key waits for it. Raises 422
    for a key that was used with another body.
    """
    sent = orjson.dumps([event_type, data], option=orjson.OPT_SORT_KEYS)
    fingerprint = hashlib.sha256(sent).hexdigest()
    used = IdempotencyKey.objects.filter(tenant=origin.tenant, key=key)
    if known := _kept(used, fingerprint):
        return known
    try:
        with transaction.atomic():
            used.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()
            row = used.create(tenant=origin.tenant, key=key, fingerprint=fingerprint)
            result = publish(origin=origin, event_type=event_type, data=data)
            row.response = orjson.dumps(result)
            row.save(update_fields=["response"])
    except IntegrityError:
        if known := _kept(used, fingerprint):
            return known
        raise
    return result


def _kept(used: QuerySet[IdempotencyKey], fingerprint: str) -> dict[str, Any] | None:
    row = used.filter(created_at__gte=timezone.now() - KEPT_FOR).first()
    if row is None:
        return None
    if row.fingerprint != fingerprint:
        raise UnprocessableError(
            "This Idempotency-Key was used for another request within the last day."
        )
    return {**orjson.loads(row.response), "duplicate": True}
