"""The front of a queue: what a person asks for is the next request of its endpoint."""

from __future__ import annotations

from datetime import datetime, timedelta

from webhooks_core.database.clock import clock
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.models.endpoints import HANGS_AFTER

ROUND = timedelta(microseconds=1)


def due_first(endpoint: Endpoint) -> datetime:
    """Return a due time before those of all that waits for an endpoint, in a transaction.

    A queue is served by due time: no column and no index of its own is needed. What is tried and
    fails gets an ordinary due time again. Where `in_order` is set, the order of events decides.
    """
    now = clock.recent()
    if endpoint.in_order:
        return now
    _probe_soon(endpoint)
    waiting = Delivery.objects.waiting().filter(endpoint=endpoint)
    first = waiting.order_by("next_attempt_at").values_list("next_attempt_at").first()
    return min(now, first[0] - ROUND) if first and first[0] else now


def _probe_soon(endpoint: Endpoint) -> None:
    """Let the pauses between the probes of an endpoint that hangs start anew, at one second."""
    long = Endpoint.objects.filter(pk=endpoint.pk, hanging_since__isnull=False)
    long.filter(timeouts__gt=HANGS_AFTER).update(timeouts=HANGS_AFTER)
