"""Removal of an owner: endpoints, events and deliveries go with the account they belong to."""

from __future__ import annotations

import time
from typing import Any

from django.db import transaction

from webhooks_core.database import sessions
from webhooks_core.dispatch.rate_limit import STALE_AFTER_S
from webhooks_core.dispatch.retention import delete_unreferenced
from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    Endpoint,
    EndpointQueue,
    EndpointSecret,
    Event,
    Trace,
)

# Between the commit of a claim and the arrival of its request in the sender.
HANDOVER_S = 0.5


def remove_owner(*, profile: str, owner: str) -> None:
    """Remove what an owner has in a profile, static endpoints excepted, for good.

    Joins the caller's transaction. Nothing is sent after its commit: while requests that a
    dispatcher has claimed may still start, this waits until they have started or are stale.
    """
    endpoints = Endpoint.objects.filter(profile=profile, owner=owner, static_key=None)
    with transaction.atomic():
        sessions.limit_idle()
        pks = _lock(endpoints)
        deliveries = Delivery.objects.filter(endpoint__in=pks)
        if deliveries.pending().filter(claimed_by__isnull=False).exists():
            time.sleep(STALE_AFTER_S + HANDOVER_S)
        events = Event.objects.filter(profile=profile, owner=owner)
        events = events.exclude(delivery__endpoint__static_key__isnull=False)
        for rows in (
            Attempt.objects.filter(delivery__in=deliveries.values("pk")),
            deliveries,
            Trace.objects.filter(event__in=events.values("pk")),
            events,
            EndpointSecret.objects.filter(endpoint__in=pks),
            EndpointQueue.objects.filter(endpoint__in=pks),
            Endpoint.objects.filter(pk__in=pks),
        ):
            delete_unreferenced(rows)


def _lock(endpoints: Any) -> list[int]:
    """Lock endpoints against claims and publishers; return their primary keys.

    Leases come first, as in a claim: until the commit no dispatcher claims anything. Then the
    queues, so that no dispatcher that starts meanwhile leases one, and the endpoints.
    """
    leases = DispatcherLease.objects.filter(ended_at=None)
    list(leases.order_by("pk").select_for_update())
    queues = EndpointQueue.objects.filter(endpoint__in=endpoints)
    list(queues.order_by("pk").select_for_update())
    rows = endpoints.order_by("pk").select_for_update().only("pk")
    return [endpoint.pk for endpoint in rows]
