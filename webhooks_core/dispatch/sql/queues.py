"""Which queues are due, and their leases: EndpointQueueQuerySet.due as SQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

import orjson
from django.db import connection, transaction

from webhooks_core.database.statements import execute, fetch, ids, statement
from webhooks_core.dispatch import leases
from webhooks_core.dispatch.shares import Owner
from webhooks_core.models import DispatcherLease, Endpoint, EndpointQueue


class LeasedRow(NamedTuple):
    """A queue that was just leased, and whose it is."""

    pk: int
    profile: str
    owner: str
    is_receiving: bool = True


LEASED_COLUMNS = ("pk", "endpoint__profile", "endpoint__owner")

# EndpointQueueQuerySet.due, and EndpointQuerySet.receiving.
_IS_DUE = "queue.next_due_at <= %s AND (queue.leased_by IS NULL OR queue.leased_by = "
_IS_RECEIVING = (
    "endpoint.deleted_at IS NULL AND endpoint.active"
    f" AND endpoint.status = {Endpoint.Status.ACTIVE:d} AND endpoint.paused_at IS NULL"
)

_HAS_DUE = (
    "SELECT EXISTS (SELECT 1 FROM webhooks_core_endpointqueue queue"  # noqa: S608 - all constants
    f" WHERE {_IS_DUE} %s))"
)


def has_due(lease: int, now: datetime) -> bool:
    """Return True if a queue is due that this lease may take."""
    [(has_due,)] = fetch(_HAS_DUE, now, lease)
    return bool(has_due)


def lease_due(
    lease: DispatcherLease, now: datetime, room: int, *, without: Collection[Owner] = ()
) -> list[LeasedRow]:
    """Lease the queues that are due first, except those of the owners in `without`.

    Their due time is cleared before the deliveries are read: a commit in between sets it again.
    """
    is_postgresql = connection.vendor == "postgresql"
    lease_queues = _lease_in_one_statement if is_postgresql else _lease_in_two
    return lease_queues(lease, now, room, without)


def leased(lease: DispatcherLease) -> list[LeasedRow]:
    """Return the queues of a lease."""
    rows = EndpointQueue.objects.filter(leased_by=lease.pk)
    return [LeasedRow(*row) for row in rows.values_list(*LEASED_COLUMNS)]


_DUE = f"""
    SELECT queue.endpoint_id, endpoint.profile, endpoint.owner, {_IS_RECEIVING}
    FROM webhooks_core_endpointqueue queue
    JOIN webhooks_core_endpoint endpoint ON endpoint.id = queue.endpoint_id
    WHERE {_IS_DUE} %s)
    AND (endpoint.profile, endpoint.owner) NOT IN (
        SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(%s)
    )
    ORDER BY queue.next_due_at LIMIT %s
"""  # noqa: S608 - all constants
_LEASE_THESE = statement(
    "UPDATE webhooks_core_endpointqueue SET leased_by = %s, next_due_at = NULL"
    " WHERE endpoint_id {among}"
)


def _lease_in_two(
    lease: DispatcherLease, now: datetime, room: int, without: Collection[Owner]
) -> list[LeasedRow]:
    with transaction.atomic():
        leases.lock(lease)
        rows = fetch(_DUE, now, lease.pk, orjson.dumps(list(without)).decode(), room)
        execute(_LEASE_THESE, lease.pk, ids([row[0] for row in rows]))
    return [LeasedRow._make(row) for row in rows]


# The same in one round trip. The lease is locked before its queues, as where leases expire; one
# that has expired gets no queue. The commit may return before it is on disk: the commit of the
# claim that follows writes it too.
_LEASE = """
    WITH living AS (
        SELECT id FROM webhooks_core_dispatcherlease WHERE id = %s AND ended_at IS NULL FOR UPDATE
    ), due AS (
        SELECT queue.endpoint_id FROM webhooks_core_endpointqueue queue, living
        WHERE {is_due} living.id)
        {without}
        ORDER BY queue.next_due_at LIMIT %s FOR UPDATE OF queue SKIP LOCKED
    )
    UPDATE webhooks_core_endpointqueue queue SET leased_by = living.id, next_due_at = NULL
    FROM due, living, webhooks_core_endpoint endpoint
    WHERE queue.endpoint_id = due.endpoint_id AND endpoint.id = due.endpoint_id
    RETURNING queue.endpoint_id, endpoint.profile, endpoint.owner,
        {is_receiving}, set_config('synchronous_commit', 'off', true)
"""
_WITHOUT = """
        AND NOT EXISTS (
            SELECT 1 FROM webhooks_core_endpoint endpoint WHERE endpoint.id = queue.endpoint_id
            AND (endpoint.profile, endpoint.owner) IN (SELECT * FROM unnest(%s::text[], %s::text[]))
        )"""
_LEASE_ANY, _LEASE_OTHERS = (
    _LEASE.format(is_due=_IS_DUE, is_receiving=_IS_RECEIVING, without=without)
    for without in ("", _WITHOUT)
)


def _lease_in_one_statement(
    lease: DispatcherLease, now: datetime, room: int, without: Collection[Owner]
) -> list[LeasedRow]:
    owners: Sequence[list[str]] = [list(part) for part in zip(*without, strict=True)]
    sql = _LEASE_OTHERS if without else _LEASE_ANY
    rows = fetch(sql, lease.pk, now, *owners, room)
    return [LeasedRow._make(row[:-1]) for row in rows]
