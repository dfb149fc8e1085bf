"""The frequent statements of the dispatcher as SQL: what is due, what is sent, and what becomes of it.

To compose one with the ORM takes several times its execution. Everything else is the ORM's.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from django.db import connection, transaction

from webhooks_core.database.clock import clock
from webhooks_core.database.statements import (
    as_time,
    execute,
    fetch,
    fetch_as_one,
    ids,
    statement,
)
from webhooks_core.dispatch import leases
from webhooks_core.models import Delivery, DispatcherLease, Endpoint
from webhooks_core.secrets import EncryptedText

# ── Queues: EndpointQueueQuerySet.due, leased ───────────────────────────────────────


# The key of a queue that is due, and whose it is: profile, owner.
DueQueue = tuple[int, str, str]
_IS_DUE = "queue.next_due_at <= %s AND (queue.leased_by IS NULL OR queue.leased_by = "
_DUE = (
    "SELECT endpoint.id, endpoint.profile, endpoint.owner"  # noqa: S608
    " FROM webhooks_core_endpointqueue queue"
    " JOIN webhooks_core_endpoint endpoint ON endpoint.id = queue.endpoint_id"
    f" WHERE {_IS_DUE} %s) ORDER BY queue.next_due_at"
)
_FREE = statement(
    "SELECT queue.endpoint_id FROM webhooks_core_endpointqueue queue"  # noqa: S608
    f" WHERE queue.endpoint_id {{among}} AND {_IS_DUE} %s)"
)
_LEASE_THESE = statement(
    "UPDATE webhooks_core_endpointqueue SET leased_by = %s, next_due_at = NULL"
    " WHERE endpoint_id {among}"
)
# Both and the lock in one round trip. The lease is locked before its queues, as where leases expire;
# one that has expired gets no queue. The commit may return before it is on disk: the commit of the
# claim that follows writes it too.
_LEASE = f"""
    WITH living AS (
        SELECT id FROM webhooks_core_dispatcherlease WHERE id = %s FOR UPDATE
    ), free AS (
        SELECT queue.endpoint_id FROM webhooks_core_endpointqueue queue, living
        WHERE queue.endpoint_id = ANY(%s::bigint[]) AND {_IS_DUE} living.id)
        FOR UPDATE OF queue SKIP LOCKED
    )
    UPDATE webhooks_core_endpointqueue queue SET leased_by = living.id, next_due_at = NULL
    FROM free, living WHERE queue.endpoint_id = free.endpoint_id
    RETURNING queue.endpoint_id, set_config('synchronous_commit', 'off', true)
"""  # noqa: S608 - all constants


def due_queues(
    lease: DispatcherLease, now: datetime, *, at_most: int
) -> list[DueQueue]:
    """Return queues that this lease may take: those that are due for longest, and the latest.

    Called many times a second. The latest are of owners whose events have just come, however many
    queues of another owner wait.
    """
    half = at_most // 2
    longest = fetch(f"{_DUE} LIMIT %s", now, lease.pk, half)
    if len(longest) < half:
        return [*longest]
    latest = fetch(f"{_DUE} DESC LIMIT %s", now, lease.pk, half)
    return [*dict.fromkeys([*longest, *reversed(latest)])]


def lease_queues(
    lease: DispatcherLease, pks: Collection[int], now: datetime
) -> set[int]:
    """Lease those of these queues that are still free and due; return their keys.

    Their due time is cleared before the deliveries are read: a commit in between sets it again.
    """
    if connection.vendor == "postgresql":
        return {pk for pk, _ in fetch(_LEASE, lease.pk, ids(pks), now)}
    with transaction.atomic():
        leases.lock(lease)
        free = {pk for (pk,) in fetch(_FREE, ids(pks), now, lease.pk)}
        execute(_LEASE_THESE, lease.pk, ids(free))
    return free


# ── Deliveries: DeliveryQuerySet.waiting, by due time ───────────────────────────────

QUEUES_PER_QUERY = 100
_DUE_COLUMNS = (
    "id, public_id, event_id, endpoint_id, attempts, interruptions, size, later"
)


class DueDelivery(NamedTuple):
    """A waiting delivery near the start of its queue; `size` is that of its event in bytes.

    `later` is when it is due, None for one that is due already.
    """

    pk: int
    public_id: str
    event_pk: int
    queue: int
    attempts: int
    interruptions: int
    size: int
    later: datetime | None

    @property
    def is_suspect(self) -> bool:
        """Whether its attempts were interrupted so often that it may be the cause."""
        return self.interruptions >= leases.SUSPECT_AFTER


def due_deliveries(limits: Mapping[int, int], now: datetime) -> list[DueDelivery]:
    """Return the earliest waiting deliveries of each queue: one more than its limit.

    `limits` has how many may be claimed, by the key of the queue. Those of a queue follow each other. The additional one shows when the queue must be checked
    again. One index range per queue: the cost does not grow with the backlog.
    """
    rows = _lateral if connection.vendor == "postgresql" else _union
    return [
        DueDelivery._make((*row[:-1], as_time(row[-1]))) for row in rows(limits, now)
    ]


def _union(limits: Mapping[int, int], at: datetime) -> Iterator[Sequence[Any]]:
    """Yield the rows of what SQLite plans quickly: a query for each queue."""
    pairs = list(limits.items())
    for start in range(0, len(pairs), QUEUES_PER_QUERY):
        part = pairs[start : start + QUEUES_PER_QUERY]
        params = [value for queue, room in part for value in (at, queue, room + 1)]
        queries = " UNION ALL ".join([_waiting("%s")] * len(part))
        yield from fetch_as_one(_DUE_COLUMNS, queries, *params)


def _lateral(limits: Mapping[int, int], at: datetime) -> Iterator[Sequence[Any]]:
    """Yield the rows of what PostgreSQL plans once for all queues: a loop over them, in their order.

    The planner does not know the limit of a queue: the greatest one, a constant inside, keeps it
    from reading and sorting whole queues.
    """
    if limits:
        queues, rooms = ids(limits), ids(limits.values())
        sql = (
            "SELECT due.* FROM unnest(%s::bigint[], %s::int[]) AS queue (id, room)"  # noqa: S608
            f" CROSS JOIN LATERAL ({_waiting('queue.id')} LIMIT queue.room + 1) AS due"
        )
        yield from fetch(sql, queues, rooms, at, max(limits.values()) + 1)


def _waiting(queue: str) -> str:
    """Return the query for the first deliveries of a queue, which takes a time and a limit."""
    # Times that have passed need not be read: that alone would be a quarter of a claim's cost.
    return (
        "SELECT * FROM (SELECT d.id, d.public_id, d.event_id, d.endpoint_id, d.attempts,"  # noqa: S608
        " d.interruptions, e.size,"
        " CASE WHEN d.next_attempt_at > %s THEN d.next_attempt_at END AS later"
        " FROM webhooks_core_delivery d JOIN webhooks_core_event e ON e.id = d.event_id"
        f" WHERE d.endpoint_id = {queue} AND d.status = {Delivery.Status.PENDING:d}"
        " AND d.claimed_by IS NULL"
        " ORDER BY d.next_attempt_at, d.id LIMIT %s) AS due"
    )


# ── Deliveries: DeliveryQuerySet.waiting and claimed ────────────────────────────────

# Statuses are in the text: with a parameter, SQLite would use no partial index.
_IS_PENDING = f"id {{among}} AND status = {Delivery.Status.PENDING:d}"
_CLAIM = statement(
    "UPDATE webhooks_core_delivery"  # noqa: S608 - all constants
    " SET attempts = attempts + 1, claimed_by = %s, claimed_at = %s"
    f" WHERE {_IS_PENDING} AND claimed_by IS NULL"
)
_DELIVER = statement(
    f"UPDATE webhooks_core_delivery SET status = {Delivery.Status.DELIVERED:d},"  # noqa: S608
    " delivered_at = %s, next_attempt_at = NULL, claimed_by = NULL"
    f" WHERE {_IS_PENDING} AND claimed_by = %s"
)


def claim(pks: Collection[int], *, lease: int) -> int:
    """Claim waiting deliveries for one attempt each; return how many were still waiting."""
    return execute(_CLAIM, lease, clock.now(), ids(pks)) if pks else 0


def deliver(pks: Collection[int], *, lease: int, at: datetime) -> None:
    """Mark claimed deliveries as delivered."""
    if pks:
        execute(_DELIVER, at, ids(pks), lease)


# ── What is sent: to which endpoints, signed with which secrets, and bodies of events ──

# What a request needs of an endpoint, in the order of its fields; the rest only people read.
SENT = (
    *("id", "public_id", "profile", "owner", "url", "status", "active", "timeouts"),
    *("deleted_at", "trusted", "max_in_flight", "standard_headers", "custom_headers"),
)
_LOCK_AND_READ = statement(
    "WITH lease AS (SELECT id FROM webhooks_core_dispatcherlease WHERE id = %s {for_update})"  # noqa: S608
    f" SELECT {', '.join(f'endpoint.{name}' for name in SENT)}, secret.value FROM lease"
    " LEFT JOIN webhooks_core_endpoint endpoint ON endpoint.id {among}"
    " LEFT JOIN webhooks_core_endpointsecret secret ON secret.endpoint_id = endpoint.id"
    " AND (secret.expires_at IS NULL OR secret.expires_at > %s) ORDER BY secret.id DESC"
)
# The key of an event, its id, its type and its body.
BodyRow = tuple[int, str, str, bytes]
_BODIES = statement(
    "SELECT id, public_id, type, body FROM webhooks_core_event WHERE id {among}"
)


def bodies(event_pks: Collection[int]) -> Iterable[BodyRow]:
    """Return what is sent of events."""
    return fetch(_BODIES, ids(event_pks)) if event_pks else ()


def lock_and_read(
    lease: DispatcherLease, endpoint_pks: Collection[int], now: datetime
) -> tuple[dict[int, Endpoint], dict[int, list[EncryptedText]]]:
    """Lock the lease; return endpoints and their current secrets, the newest first, by their keys.

    Raises LeaseLostError.
    """
    endpoints: dict[int, Endpoint] = {}
    secrets: dict[int, list[EncryptedText]] = defaultdict(list)
    rows = fetch(_LOCK_AND_READ, lease.pk, ids(endpoint_pks), now)
    for pk, *others, secret in rows:
        if pk is not None and pk not in endpoints:
            row = dict(zip(SENT, (pk, *others), strict=True))
            row["deleted_at"] = as_time(row["deleted_at"])
            if row["custom_headers"]:
                row["custom_headers"] = EncryptedText(row["custom_headers"])
            endpoints[pk] = Endpoint.from_db(connection.alias, SENT, row.values())
        if secret is not None:
            secrets[pk].append(EncryptedText(secret))
    if not rows:
        raise leases.LeaseLostError
    return endpoints, secrets


# ── Attempts ────────────────────────────────────────────────────────────────────────


class AttemptRow(NamedTuple):
    """The columns of an attempt; `details` is JSON."""

    delivery_id: int
    number: int
    started_at: datetime
    duration_ms: int
    outcome: str
    status_code: int | None
    error: str
    response_body: bytes
    is_repeated: bool
    details: str


_ATTEMPT_COLUMNS = ", ".join(AttemptRow._fields)
_INSERT = "INSERT INTO webhooks_core_attempt ({}) VALUES {}"
_VALUES = f"({', '.join(['%s'] * len(AttemptRow._fields))})"
_COPY = f"COPY webhooks_core_attempt ({_ATTEMPT_COLUMNS}) FROM STDIN"


def insert_attempts(rows: Sequence[AttemptRow]) -> None:
    """Insert attempts, in the transaction that ends their claims: so none is stored twice."""
    if connection.vendor == "postgresql" and len(rows) > 1:
        _copy(rows)
    elif rows:
        _insert(rows)


def _copy(rows: Sequence[AttemptRow]) -> None:
    """Insert a batch in half the time of an INSERT, which the server parses and converts."""
    # Errors are raised where the block ends, outside of Django's cursor.
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(_COPY) as copy,
    ):
        for row in rows:
            copy.write_row(row)


def _insert(rows: Sequence[AttemptRow]) -> None:
    at_once = _max_parameters() // len(AttemptRow._fields)
    for start in range(0, len(rows), at_once):
        batch = rows[start : start + at_once]
        sql = _INSERT.format(_ATTEMPT_COLUMNS, ", ".join([_VALUES] * len(batch)))
        with connection.cursor() as cursor:
            cursor.execute(sql, list(chain.from_iterable(_adapted(batch))))


def _max_parameters() -> int:
    if connection.vendor == "sqlite":
        # Each statement may wait for the thread of the sender: as few as possible.
        return int(connection.connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER))
    return 65_535  # of PostgreSQL's protocol


def _adapted(rows: Sequence[AttemptRow]) -> Iterator[Sequence[Any]]:
    """Yield rows with their times as SQLite stores them; Django's own adapter is far slower."""
    if connection.vendor != "sqlite":
        yield from rows
        return
    zone = connection.timezone  # read once: it takes longer than the rest of a row
    for row in rows:
        started_at = row.started_at.astimezone(zone).replace(tzinfo=None)
        yield (*row[:2], str(started_at), *row[3:])
