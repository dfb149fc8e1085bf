"""The deliveries of a batch: which are due, their claims, their results and their attempts."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from django.db import connection

from webhooks_core.database.clock import clock
from webhooks_core.database.statements import (
    as_time,
    execute,
    fetch,
    fetch_as_one,
    ids,
    statement,
)
from webhooks_core.dispatch.decisions import SUSPECT_AFTER
from webhooks_core.models import Delivery

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
        return self.interruptions >= SUSPECT_AFTER


class ClaimLimit(NamedTuple):
    """How many deliveries of a queue may be claimed."""

    queue: int
    room: int


def due_deliveries(limits: Sequence[ClaimLimit], now: datetime) -> list[DueDelivery]:
    """Return the earliest waiting deliveries of each queue: one more than its limit.

    The additional one shows when the queue must be checked again. One index range per queue:
    the cost does not grow with the backlog. Raw SQL, since the ORM has no such query and its
    model instances would be half of the cost of a claim.
    """
    rows = _lateral if connection.vendor == "postgresql" else _union
    return [_due_delivery(row) for row in rows(limits, now)]


def _due_delivery(row: Sequence[Any]) -> DueDelivery:
    return DueDelivery._make((*row[:-1], as_time(row[-1])))


def _union(limits: Sequence[ClaimLimit], at: datetime) -> Iterator[Sequence[Any]]:
    """Yield the rows of what SQLite plans quickly: a query for each queue."""
    for start in range(0, len(limits), QUEUES_PER_QUERY):
        part = limits[start : start + QUEUES_PER_QUERY]
        params = [
            value for limit in part for value in (at, limit.queue, limit.room + 1)
        ]
        queries = " UNION ALL ".join([_waiting("%s")] * len(part))
        yield from fetch_as_one(_DUE_COLUMNS, queries, *params)


def _lateral(limits: Sequence[ClaimLimit], at: datetime) -> Iterator[Sequence[Any]]:
    """Yield the rows of what PostgreSQL plans once for all queues: a loop over them, in their order.

    The planner does not know the limit of a queue: the greatest one, a constant inside, keeps it
    from reading and sorting whole queues.
    """
    if limits:
        queues, rooms = zip(*limits, strict=True)
        sql = (
            "SELECT due.* FROM unnest(%s::bigint[], %s::int[]) AS queue (id, room)"  # noqa: S608
            f" CROSS JOIN LATERAL ({_waiting('queue.id')} LIMIT queue.room + 1) AS due"
        )
        yield from fetch(sql, list(queues), list(rooms), at, max(rooms) + 1)


def _waiting(queue: str) -> str:
    """Return the query for the first deliveries of a queue, which takes a time and a limit."""
    # Of DeliveryQuerySet.waiting.
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


# DeliveryQuerySet.waiting and claimed. Statuses are in the text: with a parameter, SQLite would
# use no partial index.
_IS_PENDING = f"id {{among}} AND status = {Delivery.Status.PENDING:d}"
_IS_CLAIMED = f"{_IS_PENDING} AND claimed_by = %s"
_CLAIM = statement(
    "UPDATE webhooks_core_delivery"  # noqa: S608 - all constants
    " SET attempts = attempts + 1, claimed_by = %s, claimed_at = %s"
    f" WHERE {_IS_PENDING} AND claimed_by IS NULL"
)
_COUNT = statement(f"SELECT count(*) FROM webhooks_core_delivery WHERE {_IS_CLAIMED}")  # noqa: S608
_DELIVER = statement(
    f"UPDATE webhooks_core_delivery SET status = {Delivery.Status.DELIVERED:d},"  # noqa: S608
    f" delivered_at = %s, next_attempt_at = NULL, claimed_by = NULL WHERE {_IS_CLAIMED}"
)


def claim(pks: Collection[int], *, lease: int) -> int:
    """Claim waiting deliveries for one attempt each; return how many were still waiting."""
    return execute(_CLAIM, lease, clock.now(), ids(pks)) if pks else 0


def still_claimed(pks: Collection[int], *, lease: int) -> set[int]:
    """Return those of `pks` that this lease still claims: the fencing token's check."""
    [(count,)] = fetch(_COUNT, ids(pks), lease)
    if count == len(pks):
        # Almost always. On SQLite each row that is read may wait for the thread of the sender.
        return set(pks)
    return set(Delivery.objects.claimed(pks, lease=lease).values_list("pk", flat=True))


def deliver(pks: Collection[int], *, lease: int, at: datetime) -> None:
    """Mark claimed deliveries as delivered."""
    if pks:
        execute(_DELIVER, at, ids(pks), lease)


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


# Raw SQL: half of the time of bulk_create goes into composing it. A commit that the database
# did not confirm is written again, hence the conflicts.
_ATTEMPT_COLUMNS = ", ".join(AttemptRow._fields)
_INSERT = "INSERT INTO webhooks_core_attempt ({}) VALUES {} ON CONFLICT DO NOTHING"
_VALUES = f"({', '.join(['%s'] * len(AttemptRow._fields))})"
_COPY = f"COPY webhooks_core_attempt ({_ATTEMPT_COLUMNS}) FROM STDIN"


def insert_attempts(rows: Sequence[AttemptRow]) -> None:
    """Insert attempts. On PostgreSQL a batch raises IntegrityError if one of them is stored already."""
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
