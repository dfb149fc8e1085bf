"""The statements written as SQL do on random rows what the ORM does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, NamedTuple
from unittest.mock import Mock

import orjson
import pytest
from django.db import connection, transaction
from django.db.models import Case, F, When

from tests.clock import travel
from tests.webhooks_core.factories import (
    DeliveryFactory,
    DispatcherLeaseFactory,
    EndpointFactory,
    EventFactory,
)
from tests.webhooks_core.reading import rows_read, vacuum
from webhooks_core import secrets
from webhooks_core.database.statements import fetch
from webhooks_core.dispatch import sql
from webhooks_core.dispatch.leases import LeaseLostError
from webhooks_core.dispatch.sql import AttemptRow, BodyRow, DueDelivery, DueQueue
from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    Endpoint,
    EndpointQueue,
    EndpointSecret,
    Event,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain")]

NOW = datetime(2026, 3, 29, 1, 30, 0, 250, UTC)
LEASES = (1, 2)
# What the formats of COPY, of CSV and of SQL give a meaning of its own.
HOSTILE = "\\N \\. \t\r\n\\x41 \\\\ 'quoted' \"twice\" {a,b} %s $1 é \U0001f600"


class Arguments(NamedTuple):
    """What a statement is called with. Some ids are of no row."""

    lease: int
    deliveries: list[int]
    limits: dict[int, int]
    room: int
    events: list[int]
    attempts: list[AttemptRow]


def around_now(chance: Random) -> datetime:
    """Return a time before, after or exactly at NOW."""
    return NOW + chance.choice([-1, 0, 1]) * timedelta(seconds=chance.random() * 100)


def fill(chance: Random) -> Arguments:
    """Make random rows; return random arguments."""
    for pk in LEASES:
        if chance.choice([True, True, False]):
            DispatcherLeaseFactory.create(pk=pk, slot=pk, expires_at=NOW)
    endpoints = [EndpointFactory.create() for _ in range(5)]
    for number, endpoint in enumerate(endpoints):
        EndpointQueue.objects.filter(endpoint=endpoint).update(
            # No two at one time: a limit takes the earliest.
            next_due_at=around_now(chance) + timedelta(microseconds=number),
            leased_by=chance.choice([None, *LEASES]),
        )
    events = EventFactory.create_batch(6)
    rows = [
        DeliveryFactory.create(
            event=events[number % 6],
            endpoint=chance.choice(endpoints),
            replay_number=number,
            attempts=chance.randint(1, 5),
            interruptions=chance.randint(0, 3),
            next_attempt_at=around_now(chance),
            claimed_by=chance.choice([None, *LEASES]),
        )
        for number in range(30)
    ]
    Delivery.objects.filter(pk__in=[row.pk for row in rows[::7]]).fail(error="x")
    pks = [row.pk for row in chance.sample(rows, 12)]
    limits = {row.pk: chance.randint(1, 4) for row in endpoints}
    attempts = [attempt(pk, number) for number, pk in enumerate(pks)]
    for endpoint in endpoints:
        EndpointSecret.objects.create(
            endpoint=endpoint, value=secrets.make(), expires_at=around_now(chance)
        )
    Endpoint.objects.filter(pk=endpoints[0].pk).update(
        deleted_at=NOW, timeouts=3, trusted=True, custom_headers='{"X-A": "b"}'
    )
    lease, room = chance.choice(LEASES), chance.randint(1, 4)
    return Arguments(
        lease, [*pks, 10**9], limits, room, [row.pk for row in events[:4]], attempts
    )


def attempt(pk: int, number: int) -> AttemptRow:
    return AttemptRow(
        delivery_id=pk,
        number=100 + number,
        started_at=NOW + timedelta(microseconds=number),
        duration_ms=number,
        outcome="http",
        status_code=number or None,
        error=HOSTILE,
        response_body=bytes(range(256)),
        is_repeated=bool(number % 2),
        details=orjson.dumps({"response": HOSTILE}).decode(),
    )


def claim(given: Arguments) -> int:
    return sql.claim(given.deliveries, lease=given.lease)


def claim_by_orm(given: Arguments) -> int:
    waiting = Delivery.objects.waiting().filter(pk__in=given.deliveries)
    return waiting.update(
        attempts=F("attempts") + 1, claimed_by=given.lease, claimed_at=NOW
    )


def deliver(given: Arguments) -> None:
    sql.deliver(given.deliveries, lease=given.lease, at=NOW)


def deliver_by_orm(given: Arguments) -> None:
    Delivery.objects.claimed(given.deliveries, lease=given.lease).update(
        status=Delivery.Status.DELIVERED,
        delivered_at=NOW,
        next_attempt_at=None,
        claimed_by=None,
    )


def read_due(given: Arguments) -> list[DueDelivery]:
    """In the order of each queue: that of queues is free."""
    rows = sql.due_deliveries(given.limits, NOW)
    return sorted(rows, key=lambda row: row.queue)


def read_due_by_orm(given: Arguments) -> list[DueDelivery]:
    later = Case(When(next_attempt_at__gt=NOW, then="next_attempt_at"))
    found: list[DueDelivery] = []
    for queue, room in sorted(given.limits.items()):
        waiting = Delivery.objects.waiting().filter(endpoint=queue)
        columns = ("pk", "public_id", "event_id", "endpoint_id", "attempts")
        rows = waiting.order_by("next_attempt_at", "pk").values_list(
            *columns, "interruptions", "event__size", later
        )
        found += map(DueDelivery._make, rows[: room + 1])
    return found


def read_queues(given: Arguments) -> list[DueQueue]:
    lease = DispatcherLease(pk=given.lease)
    return sql.due_queues(lease, NOW, at_most=2 * given.room)


def read_queues_by_orm(given: Arguments) -> list[DueQueue]:
    due = EndpointQueue.objects.due(NOW, lease=given.lease)
    rows = list(due.values_list("pk", "endpoint__profile", "endpoint__owner"))
    middle = rows[given.room : -given.room]
    return [row for row in rows if row not in middle]


def lease_queues(given: Arguments) -> set[int]:
    lease = DispatcherLease(pk=given.lease)
    try:
        return sql.lease_queues(lease, [*given.limits][:4], NOW)
    except LeaseLostError:
        return set()


def lease_queues_by_orm(given: Arguments) -> set[int]:
    if not DispatcherLease.objects.filter(pk=given.lease).exists():
        return set()
    due = EndpointQueue.objects.due(NOW, lease=given.lease)
    free = set(due.filter(pk__in=[*given.limits][:4]).values_list("pk", flat=True))
    leased = EndpointQueue.objects.filter(pk__in=free)
    leased.update(leased_by=given.lease, next_due_at=None)
    return free


def read_bodies(given: Arguments) -> list[BodyRow]:
    rows = sql.bodies(given.events)
    return sorted((pk, id_, kind, bytes(body)) for pk, id_, kind, body in rows)


def read_bodies_by_orm(given: Arguments) -> list[BodyRow]:
    rows = Event.objects.filter(pk__in=given.events).order_by("pk")
    columns = rows.values_list("pk", "public_id", "type", "body")
    return [(pk, id_, kind, bytes(body)) for pk, id_, kind, body in columns]


Sent = tuple[dict[str, Any], list[str]]


def read_endpoints(given: Arguments) -> list[Sent] | None:
    lease = DispatcherLease(pk=given.lease)
    try:
        endpoints, secrets = sql.lock_and_read(lease, [*given.limits, 10**9], NOW)
    except LeaseLostError:
        return None
    assert secrets.keys() <= endpoints.keys()
    return [
        sent(row, [secret.decrypt() for secret in secrets[pk]])
        for pk, row in sorted(endpoints.items())
    ]


def read_endpoints_by_orm(given: Arguments) -> list[Sent] | None:
    if not DispatcherLease.objects.filter(pk=given.lease).exists():
        return None
    rows = Endpoint.objects.filter(pk__in=given.limits).order_by("pk")
    return [sent(row, row.secrets(now=NOW)) for row in rows]


def sent(endpoint: Endpoint, secrets: list[str]) -> Sent:
    """Return what a request needs of an endpoint."""
    custom = endpoint.custom_headers and endpoint.custom_headers.decrypt()
    fields = {name: getattr(endpoint, name) for name in sql.SENT}
    return fields | {"custom_headers": custom}, secrets


def insert(given: Arguments) -> None:
    sql.insert_attempts(given.attempts)


def insert_by_orm(given: Arguments) -> None:
    Attempt.objects.bulk_create(
        Attempt(**row._asdict() | {"details": orjson.loads(row.details)})
        for row in given.attempts
    )


Action = Callable[[Arguments], object]
PAIRS: list[tuple[Action, Action]] = [
    (claim, claim_by_orm),
    (deliver, deliver_by_orm),
    (read_due, read_due_by_orm),
    (read_bodies, read_bodies_by_orm),
    (read_endpoints, read_endpoints_by_orm),
    (read_queues, read_queues_by_orm),
    (lease_queues, lease_queues_by_orm),
    (insert, insert_by_orm),
]


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def outcome(action: Action, given: Arguments) -> tuple[object, list[Any]]:
    """Return what an action returns, and all rows after it."""
    with undone():
        done = action(given)
        tables: list[Any] = [Delivery, EndpointQueue, Attempt]
        rows = [list(table.objects.order_by("pk").values()) for table in tables]
        for row in rows[2]:
            row |= {"id": 0, "response_body": bytes(row["response_body"])}
        return done, rows


@pytest.mark.parametrize(
    ("by_sql", "by_orm"), PAIRS, ids=[by_sql.__name__ for by_sql, _ in PAIRS]
)
@pytest.mark.parametrize("seed", range(3))
def test_a_statement_does_what_the_orm_does(by_sql, by_orm, seed):
    given = fill(Random(seed))  # noqa: S311 - the same rows in each run
    with travel(NOW, tick=False):
        assert outcome(by_sql, given) == outcome(by_orm, given)


def test_more_rows_than_a_statement_takes_are_read_and_stored(monkeypatch):
    given = fill(Random(0))  # noqa: S311
    expected = outcome(insert, given), outcome(read_due, given)
    monkeypatch.setattr(sql, "_max_parameters", lambda: 25)
    monkeypatch.setattr(sql, "QUEUES_PER_QUERY", 2)
    assert (outcome(insert, given), outcome(read_due, given)) == expected
    assert read_due(given._replace(limits={})) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="reads PostgreSQL's plans")
def test_a_claim_reads_an_index_range_of_each_queue(monkeypatch):
    endpoints = [EndpointFactory.create(owner=owner) for owner in ("a", "b", "c")]
    events = EventFactory.create_batch(200)
    for endpoint in endpoints:
        Delivery.objects.bulk_create(
            DeliveryFactory.build(endpoint=endpoint, event=event) for event in events
        )
    vacuum("webhooks_core_delivery", "webhooks_core_event")
    rooms = (1, 4, 10)  # PostgreSQL rounds the average
    limits = {
        endpoint.pk: room for endpoint, room in zip(endpoints, rooms, strict=True)
    }
    spy = Mock(wraps=fetch)
    monkeypatch.setattr(sql, "fetch", spy)
    assert len(sql.due_deliveries(limits, NOW)) == sum(rooms) + len(rooms)
    template, *values = spy.call_args.args
    with connection.cursor() as cursor:
        statement = cursor.mogrify(template, values)
        for table in ("webhooks_core_delivery", "webhooks_core_event"):
            assert rows_read(statement, table) <= sum(rooms) + len(rooms)
        cursor.execute(f"EXPLAIN {statement}")
        plan = [line for (line,) in cursor.fetchall()]
    assert any("Index Scan using delivery_due " in line for line in plan)
