"""Jobs that publish and claim, and measure it."""

from __future__ import annotations

import random
import time
from typing import Any

from django.db import transaction
from django.utils import timezone

from benchmarks.deliveries.filling import (
    CONTEXT,
    EVENT_TYPE,
    OWNER,
    PROFILE,
    clear,
    make_endpoints,
    padding,
)
from webhooks_core.dispatch import leases
from webhooks_core.dispatch.claims import OpenClaims
from webhooks_core.dispatch.queues import LeasedQueues
from webhooks_core.models import Delivery, Event
from webhooks_core.publishing import publish


def _publish(text: str) -> Event:
    return publish(
        profile=PROFILE,
        owner=OWNER,
        event_type=EVENT_TYPE,
        data={"document_id": "doc_bench", "text": text},
        metadata=CONTEXT,
    )


def publish_cost(url: str, endpoints: int, times: int) -> list[float]:
    """Return the seconds that each call took, commit and wake-up included."""
    clear()
    make_endpoints(url, endpoints)
    text, took = padding(512), []
    for _ in range(times):
        started = time.perf_counter()
        with transaction.atomic():
            _publish(text)
        took.append(time.perf_counter() - started)
    return took


def publish_many(count: int, per_transaction: int = 5) -> int:
    """Publish as a busy product does; return how many."""
    text = padding(512)
    for start in range(0, count, per_transaction):
        with transaction.atomic():
            for _ in range(min(per_transaction, count - start)):
                _publish(text)
    return count


def publish_now_and_then(times: int, pause_s: float) -> dict[str, float]:
    """Publish one event after another; return when each was committed, by its id."""
    text, committed = padding(512), {}
    for _ in range(times):
        # A random pause, so that no periodic process is in step with it.
        time.sleep(pause_s * random.uniform(1, 1.5))  # noqa: S311 - no secret
        event_id, at = _publish_and_stamp(text)
        committed[event_id] = at
    return committed


def _publish_and_stamp(text: str) -> tuple[str, float]:
    """Return the id of a new event and when it was committed."""
    stamp: list[float] = []
    with transaction.atomic():
        # The first hook of the commit: the engine's come after it.
        transaction.on_commit(lambda: stamp.append(time.monotonic()))
        event = _publish(text)
    return event.public_id, stamp[0]


def claim_cost(times: int) -> dict[str, Any]:
    """Return the seconds that each claim took, from the read of the queues on, and its size."""
    took, sizes = zip(*[claim_once(all_queues=True) for _ in range(times)], strict=True)
    return {"seconds": took, "sizes": sizes}


def claim_once(*, all_queues: bool) -> tuple[float, int]:
    """Claim from all due queues, or from the first batch of them; return the seconds and how many.

    They are released without results: the next claim finds the same deliveries.
    """
    lease = leases.acquire()
    if lease is None:
        raise RuntimeError("another process works on the scratch database")
    queues = LeasedQueues(lease)
    claims = OpenClaims(lease, queues)
    started = time.perf_counter()
    while queues.lease_due(timezone.now()) and all_queues:
        pass
    requests = claims.claim_due(timezone.now())
    took = time.perf_counter() - started
    claimed = [claims.pop(request.key).pk for request in requests]
    Delivery.objects.release(claimed, lease=lease.pk)
    queues.release(queue.pk for queue in queues.idle())
    leases.release(lease, attempts=0)
    return took, len(requests)
