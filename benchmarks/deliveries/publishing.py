"""Jobs that publish."""

from __future__ import annotations

import random
import time

from django.db import transaction

from benchmarks.deliveries.filling import (
    CONTEXT,
    EVENT_TYPE,
    OWNER,
    PROFILE,
    padding,
)
from webhooks_core.models import Event
from webhooks_core.publishing import publish


def _publish(text: str) -> Event:
    return publish(
        profile=PROFILE,
        owner=OWNER,
        event_type=EVENT_TYPE,
        data={"document_id": "doc_bench", "text": text},
        metadata=CONTEXT,
    )


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
