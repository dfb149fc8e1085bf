"""Random rows of the engine, and random arguments of its statements."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

from django.db import models

from tests.webhooks_core.factories import DispatcherLeaseFactory
from webhooks_core.dispatch.shares import Owner
from webhooks_core.dispatch.sql.deliveries import ClaimLimit
from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    Endpoint,
    EndpointQueue,
    EndpointSecret,
    Event,
)
from webhooks_core.secrets import EncryptedText

NOW = datetime(2026, 3, 29, 1, 30, 0, 250, UTC)
# Above what the sequences of PostgreSQL give out.
FIRST = 10**9
ENDPOINTS = range(FIRST, FIRST + 8)
EVENTS = range(FIRST, FIRST + 6)
DELIVERIES = range(FIRST, FIRST + 40)
LEASES = range(FIRST, FIRST + 3)
OWNERS = [
    (profile, owner)
    for profile in ("plain", "shop")
    for owner in ("alice", """o'neil "{a,\\b}" %s""")
]
TABLES: tuple[Any, ...] = (
    DispatcherLease,
    Event,
    Endpoint,
    EndpointSecret,
    EndpointQueue,
    Delivery,
    Attempt,
)

Row = dict[str, Any]
Tables = dict[str, list[Row]]


class Arguments(NamedTuple):
    """What a statement is called with. Some ids are of no row."""

    lease: int
    endpoints: list[int]
    events: list[int]
    deliveries: list[int]
    without: list[Owner]
    room: int
    limits: list[ClaimLimit]
    at: datetime


def around_now(chance: Random) -> datetime:
    """Return a time before, after or exactly at NOW."""
    return NOW + chance.choice([-1, 0, 1]) * timedelta(seconds=chance.random() * 100)


def sample(chance: Random, pks: range) -> list[int]:
    """Return some ids in any order, of which one may have no row."""
    return chance.sample([*pks, pks.stop], chance.randint(1, len(pks)))


def arguments(chance: Random) -> Arguments:
    return Arguments(
        lease=chance.choice(LEASES),
        endpoints=sample(chance, ENDPOINTS),
        events=sample(chance, EVENTS),
        deliveries=sample(chance, DELIVERIES),
        without=chance.sample(OWNERS, chance.randint(0, 2)),
        room=chance.randint(1, 8),
        limits=[
            ClaimLimit(pk, chance.randint(1, 4)) for pk in sample(chance, ENDPOINTS)
        ],
        at=around_now(chance),
    )


def fill(chance: Random) -> None:
    """Replace all rows of the engine by random ones."""
    for table in reversed(TABLES):
        table.objects.all().delete()
    rows = [*leases_(chance), *events(chance), *endpoints(chance), *deliveries(chance)]
    for table in TABLES:
        table.objects.bulk_create(row for row in rows if type(row) is table)


def leases_(chance: Random) -> list[models.Model]:
    return [
        DispatcherLeaseFactory.build(
            pk=pk, slot=None, ended_at=chance.choice([None, None, NOW]), expires_at=NOW
        )
        for pk in LEASES
    ]


def events(chance: Random) -> list[models.Model]:
    return [
        Event(
            pk=pk,
            public_id=f"evt_{pk}",
            profile="plain",
            owner="alice",
            type=chance.choice(["thing.made", "thing.lost"]),
            body=(body := chance.randbytes(8)),
            size=len(body),
            created_at=NOW,
        )
        for pk in EVENTS
    ]


def endpoints(chance: Random) -> list[models.Model]:
    return [row for pk in ENDPOINTS for row in endpoint(chance, pk)]


def endpoint(chance: Random, pk: int) -> list[models.Model]:
    """Return an endpoint with its queue and up to three secrets."""
    profile, owner = chance.choice(OWNERS)
    row = Endpoint(
        pk=pk,
        public_id=f"ep_{pk}",
        profile=profile,
        owner=owner,
        url="http://127.0.0.1:9/hook",
        event_types=chance.sample(["thing.made", "thing.lost"], chance.randint(0, 2)),
        filter=chance.choice([None, {"type": "thing.made"}]),
        status=chance.choice([*Endpoint.Status, Endpoint.Status.ACTIVE]),
        active=chance.random() < 0.7,
        paused_at=chance.choice([None, None, None, NOW]),
        deleted_at=chance.choice([None, None, None, NOW]),
        consecutive_failures=chance.randint(0, 5),
        timeouts=chance.randint(0, 5),
        hanging_since=chance.choice([None, NOW]),
        last_attempt_at=chance.choice([None, NOW - timedelta(days=1)]),
        last_success_at=chance.choice([None, NOW - timedelta(days=2)]),
        failing_since=chance.choice([None, NOW - timedelta(days=1)]),
        failed_attempts=chance.randint(0, 5),
        alike_failures=chance.randint(0, 5),
        created_at=NOW,
        updated_at=NOW,
    )
    queue = EndpointQueue(
        endpoint=row,
        # No two at one time: a limit takes the earliest.
        next_due_at=chance.choice(
            [None, around_now(chance) + timedelta(microseconds=pk - FIRST)]
        ),
        leased_by=chance.choice([None, *LEASES]),
    )
    secrets = [
        EndpointSecret(
            pk=3 * pk + number,
            endpoint=row,
            value=f"secret {number}",
            created_at=NOW,
            expires_at=chance.choice([None, around_now(chance)]),
        )
        for number in range(chance.randint(0, 3))
    ]
    return [row, queue, *secrets]


def deliveries(chance: Random) -> list[models.Model]:
    return [delivery(chance, pk) for pk in DELIVERIES]


def delivery(chance: Random, pk: int) -> Delivery:
    status = chance.choice([*Delivery.Status, *[Delivery.Status.PENDING] * 3])
    is_pending = status == Delivery.Status.PENDING
    return Delivery(
        pk=pk,
        public_id=f"dlv_{pk}",
        event_id=chance.choice(EVENTS),
        endpoint_id=chance.choice(ENDPOINTS),
        status=status,
        attempts=chance.randint(1, 5),
        interruptions=chance.randint(0, 3),
        next_attempt_at=around_now(chance) if is_pending else None,
        claimed_by=chance.choice([None, *LEASES]) if is_pending else None,
        claimed_at=chance.choice([None, NOW - timedelta(minutes=1)]),
        delivered_at=NOW if status == Delivery.Status.DELIVERED else None,
        created_at=NOW,
        last_error=chance.choice(["", "HTTP 500"]),
        replay_number=pk - FIRST,
    )


def stored() -> Tables:
    """Return all rows, without the ids that are given out at random or by a sequence."""
    return {
        table.__name__: sorted(map(plain, table.objects.values()), key=repr)
        for table in TABLES
    }


def plain(row: Row) -> Row:
    """Return the values of a row without its ids and ciphertexts."""
    return {
        name: bytes(value) if isinstance(value, memoryview) else value
        for name, value in row.items()
        if name not in {"id", "public_id"} and not isinstance(value, EncryptedText)
    }
