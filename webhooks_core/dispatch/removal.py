"""Removing an owner: endpoints, events and deliveries go with the account they belong to."""

from __future__ import annotations

import time
from typing import Any

from django.db import transaction

from webhooks_core.dispatch.rate_limit import STALE_AFTER_S
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

# Between the commit of a claim and its request in the sender's queue.
HANDOVER_S = 0.5


def remove_owner(*, profile: str, owner: str) -> None:
    """Remove what an owner has in a profile, static endpoints excepted, for good.

    Joins the caller's transaction. Nothing is sent after its commit: while requests that a
    dispatcher has claimed may still start, this waits until they have started or are stale.
    """
    endpoints = Endpoint.objects.filter(profile=profile, owner=owner, static_key=None)
    with transaction.atomic():
        pks = _locked(endpoints)
        deliveries = Delivery.objects.filter(endpoint__in=pks)
        pending = deliveries.filter(status=Delivery.Status.PENDING)
        if pending.filter(claimed_by__isnull=False).exists():
            time.sleep(STALE_AFTER_S + HANDOVER_S)
        events = Event.objects.filter(profile=profile, owner=owner)
        events = events.exclude(delivery__endpoint__static_key__isnull=False)
        _delete(Attempt.objects.filter(delivery__in=deliveries.values("pk")))
        _delete(deliveries)
        _delete(Trace.objects.filter(event__in=events.values("pk")))
        _delete(events)
        for model in (EndpointSecret, EndpointQueue):
            _delete(model.objects.filter(endpoint__in=pks))
        _delete(Endpoint.objects.filter(pk__in=pks))


def _locked(endpoints: Any) -> list[int]:
    """Lock endpoints against claims and publishers; return their primary keys.

    Shifts come first, as in a claim: until the commit none of them claims anything. Then the
    lanes, so that no shift that begins meanwhile gets one, and the endpoints.
    """
    list(
        DispatcherLease.objects.filter(ended_at=None).order_by("pk").select_for_update()
    )
    lanes = EndpointQueue.objects.filter(endpoint__in=endpoints).order_by("pk")
    list(lanes.select_for_update())
    return [it.pk for it in endpoints.order_by("pk").select_for_update().only("pk")]


def _delete(rows: Any) -> None:
    """Delete rows on which nothing hangs any more; delete() would read every one, bodies too."""
    rows._raw_delete(rows.db)  # noqa: SLF001 - there is no public way
