"""Jobs that fill and empty a scratch database, and that publish."""

from __future__ import annotations

import base64
import os
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.models import Count
from django.utils import timezone

from webhooks_core import ids, profiles, times
from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    Endpoint,
    EndpointQueue,
    EndpointSecret,
    Event,
)
from webhooks_core.profiles import EventContext
from webhooks_core.publishing import publish

PROFILE = "gateway"
EVENT_TYPE = "ingest.completed"
OWNER = "bench"
SECRET = "whsec_" + "bench" * 8
CONTEXT = {"request_id": "0" * 32, "principal_id": "bench", "trace_id": "0" * 32}
AT_ONCE = 500


def prepare() -> None:
    call_command("migrate", verbosity=0)


def clear() -> None:
    """Empty the engine's tables."""
    models = (
        Attempt,
        Delivery,
        Event,
        EndpointQueue,
        EndpointSecret,
        Endpoint,
        DispatcherLease,
    )
    tables = [model._meta.db_table for model in models]
    statements = connection.ops.sql_flush(no_style(), tables, allow_cascade=True)
    connection.ops.execute_sql_flush(statements)


def body(size: int, padding: str) -> tuple[str, bytes]:
    """Return the id and the bytes of a new event that has so many bytes, if it can be so small."""
    dialect = profiles.get(PROFILE)
    public_id = ids.public_id(dialect.event_prefix)
    happening = EventContext(
        id=public_id,
        type=EVENT_TYPE,
        owner=OWNER,
        created_at=times.iso(timezone.now()),
        data={"document_id": "doc_bench", "text": ""},
        metadata=CONTEXT,
    )
    text = orjson.dumps(dialect.envelope(happening))
    cut = padding[: max(0, size - len(text))].encode()
    return public_id, text.replace(b'"text":""', b'"text":"' + cut + b'"')


def padding(size: int) -> str:
    """Return text that does not compress: a database would store less than it is given."""
    return base64.b64encode(os.urandom(size)).decode()


def make_endpoints(url: str, count: int, owner: str = OWNER) -> list[Endpoint]:
    """Make endpoints beyond any quota, each with a secret and a queue."""
    dialect = profiles.get(PROFILE)
    with transaction.atomic():
        rows = Endpoint.objects.bulk_create(
            Endpoint(
                public_id=ids.public_id(dialect.endpoint_prefix),
                profile=PROFILE,
                owner=owner,
                url=url,
            )
            for _ in range(count)
        )
        EndpointSecret.objects.bulk_create(
            EndpointSecret(endpoint=endpoint, value=SECRET) for endpoint in rows
        )
        EndpointQueue.objects.bulk_create(
            EndpointQueue(endpoint=endpoint) for endpoint in rows
        )
    return rows


def fill(
    groups: Sequence[Mapping[str, Any]],
    size: int,
    owner: str = OWNER,
) -> list[int]:
    """Create pending deliveries, an event each; return their keys.

    A group names a `url`, how many `endpoints` lead there, and how many `deliveries` they get.
    """
    keys = [pk for group in groups for pk in _fill(size, owner, **group)]
    queues = EndpointQueue.objects.values_list("pk", flat=True)
    EndpointQueue.objects.mark_due(list(queues), at=timezone.now())
    return keys


def _fill(
    size: int, owner: str, *, url: str, endpoints: int, deliveries: int
) -> list[int]:
    targets, pad = make_endpoints(url, endpoints, owner), padding(size)
    pks: list[int] = []
    for start in range(0, deliveries, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, deliveries))
        with transaction.atomic():
            events = Event.objects.bulk_create(_event(size, pad) for _ in numbers)
            rows = Delivery.objects.bulk_create(
                Delivery(
                    public_id=ids.public_id("dlv_"),
                    event=event,
                    endpoint=targets[number % endpoints],
                )
                for number, event in zip(numbers, events, strict=True)
            )
        pks += [row.pk for row in rows]
    return pks


def _event(size: int, pad: str) -> Event:
    public_id, text = body(size, pad)
    return Event(
        public_id=public_id,
        profile=PROFILE,
        owner=OWNER,
        type=EVENT_TYPE,
        body=text,
        size=len(text),
    )


def state() -> dict[str, int]:
    """Return how many deliveries there are of each status, claimed ones separately."""
    counts = dict(
        Delivery.objects.values_list("status").annotate(count=Count("pk")).order_by()
    )
    claimed = Delivery.objects.exclude(claimed_by=None).count()
    return {
        "waiting": counts.get(0, 0),
        "delivered": counts.get(1, 0),
        "claimed": claimed,
    }


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
