"""Which deliveries of leased queues are due: what a claim may take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from webhooks_core.database.statements import as_time, fetch, fetch_as_one
from webhooks_core.dispatch.decisions import SUSPECT_AFTER
from webhooks_core.models import Delivery

QUEUES_PER_QUERY = 100
_COLUMNS = "id, public_id, event_id, endpoint_id, attempts, interruptions, size, later"


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
    """How many deliveries of a queue may be claimed, and whether strictly in event order."""

    queue: int
    room: int
    in_order: bool = False


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
        queries = (_waiting("%s", in_order=limit.in_order) for limit in part)
        yield from fetch_as_one(_COLUMNS, " UNION ALL ".join(queries), *params)


def _lateral(limits: Sequence[ClaimLimit], at: datetime) -> Iterator[Sequence[Any]]:
    """Yield the rows of what PostgreSQL plans once for all queues: a loop over them, in their order.

    The planner does not know the limit of a queue: the greatest one, a constant inside, keeps it
    from reading and sorting whole queues.
    """
    for in_order in (False, True):
        if part := [limit for limit in limits if limit.in_order == in_order]:
            rooms = [limit.room + 1 for limit in part]
            waiting = _waiting("queue.id", in_order=in_order)
            sql = (
                "SELECT due.* FROM unnest(%s::bigint[], %s::int[]) AS queue (id, room)"  # noqa: S608
                f" CROSS JOIN LATERAL ({waiting} LIMIT queue.room) AS due"
            )
            queues = [limit.queue for limit in part]
            yield from fetch(sql, queues, rooms, at, max(rooms))


def _waiting(queue: str, *, in_order: bool) -> str:
    """Return the query for the first deliveries of a queue, which takes a time and a limit."""
    # Of DeliveryQuerySet.waiting. In strict order the first one is due or makes the others wait, at any due time.
    order = "event_id" if in_order else "next_attempt_at"
    # Times that have passed need not be read: that alone would be a quarter of a claim's cost.
    return (
        "SELECT * FROM (SELECT d.id, d.public_id, d.event_id, d.endpoint_id, d.attempts,"  # noqa: S608
        " d.interruptions, e.size,"
        " CASE WHEN d.next_attempt_at > %s THEN d.next_attempt_at END AS later"
        " FROM webhooks_core_delivery d JOIN webhooks_core_event e ON e.id = d.event_id"
        f" WHERE d.endpoint_id = {queue} AND d.status = {Delivery.Status.PENDING:d}"
        " AND d.claimed_by IS NULL"
        f" ORDER BY d.{order}, d.id LIMIT %s) AS due"
    )
