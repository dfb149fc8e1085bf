"""Notifications that queues have work, and how an idle dispatcher waits for one.

They are hints: a lost one delays work until the next look at the queues, or the sweep. On
PostgreSQL a dispatcher listens for them. On SQLite it polls a counter of writes, which costs
almost nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import structlog
from django.db import DatabaseError, connection, transaction
from django.db.models import Q
from django_q.brokers import Broker, get_broker
from django_q.conf import Conf

from webhooks_core.database.clock import clock
from webhooks_core.database.outages import reason
from webhooks_core.database.statements import fetch, ids
from webhooks_core.models import DispatcherLease, EndpointQueue, EngineState

DISPATCH = "webhooks_core.tasks.dispatch"
# If no dispatcher has started within this time, the task is queued again.
WAKE_AGAIN_AFTER = timedelta(seconds=5)
MAX_QUEUED = 100
NO_LIMIT = -1
QUICK: dict[str, Any] = {
    "socket_connect_timeout": 0.25,
    "socket_timeout": 0.5,
    "retry": None,
}

log = structlog.stdlib.get_logger(__name__)


def notify_on_commit(
    endpoint_ids: Sequence[int], *, at: datetime | None = None
) -> None:
    """Notify once the caller's transaction has committed; an error then does not fail the caller."""
    # Not a partial: to log what a robust hook raised, Django needs a function's name.
    transaction.on_commit(lambda: notify(endpoint_ids, at=at), robust=True)


def notify(endpoint_ids: Sequence[int], *, at: datetime | None = None) -> None:
    """Tell the queues of these endpoints when they have work; wake a dispatcher if none is live.

    Runs after the commit, so that no caller's transaction locks the queues.
    """
    _mark_due(endpoint_ids, at=at)
    wake_dispatcher()


def _mark_due(endpoint_ids: Sequence[int], *, at: datetime | None) -> None:
    """Set the due time of queues, and notify the dispatchers that listen.

    Queues that are due earlier anyway need no notification.
    """
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        fetch(_MARK_AND_NOTIFY, at, ids(endpoint_ids))
    else:
        EndpointQueue.objects.mark_due(endpoint_ids, at=at or clock.in_sql())


# EndpointQueueQuerySet.mark_due and the notification in one round trip: publishers wait for it.
# The commit need not be on disk when it returns: the sweep repairs what a crash of the server loses.
_MARK_AND_NOTIFY = """
    WITH due AS (SELECT coalesce(%s::timestamptz, statement_timestamp()) AS at), marked AS (
        UPDATE webhooks_core_endpointqueue SET next_due_at = due.at FROM due
        WHERE endpoint_id = ANY(%s::bigint[]) AND (next_due_at IS NULL OR next_due_at > due.at)
        RETURNING 1
    )
    SELECT pg_notify('webhooks_core', extract(epoch FROM statement_timestamp())::text),
        set_config('synchronous_commit', 'off', true)
    FROM marked LIMIT 1
"""


def wake_dispatcher(*, at_work: int = 0) -> bool:
    """Queue the task of a dispatcher unless more than `at_work` are live, or one is woken already.

    Return True if the task was queued. A live dispatcher looks at the queues many times a second.
    """
    now = clock.in_sql()
    live = DispatcherLease.objects.live().values_list(
        "pk"
    )  # composed quicker than a count
    if len(live[: at_work + 1]) > at_work:
        return False
    stale = Q(woken_at=None) | Q(woken_at__lt=now - WAKE_AGAIN_AFTER)
    if EngineState.objects.filter(stale).update(woken_at=now):
        return enqueue(DISPATCH)
    # `manage.py flush` removes the row; without it no dispatcher would ever be woken.
    _, is_new = EngineState.objects.get_or_create(pk=1, defaults={"woken_at": now})
    return is_new and enqueue(DISPATCH)


def enqueue(task: str) -> bool:
    """Queue a task; return False if that fails, which is logged, or if many tasks wait already.

    While no cluster runs, none is needed: each one wakes a dispatcher when it starts.
    """
    try:
        from django_q.tasks import async_task  # fails where django_q is not installed

        if (broker := _broker()).queue_size() >= MAX_QUEUED:
            return False
        # A dispatcher runs until it is stopped; other tasks have the time limit of the cluster.
        options = {"timeout": NO_LIMIT} if task == DISPATCH else {}
        async_task(task, q_options={"broker": broker, **options})
    except Exception as error:  # a hint may fail in any way
        _broker.cache_clear()
        log.warning("wake-up failed", task=task, error=reason(error))
        return False
    return True


@cache
def _broker() -> Broker:
    """Return the broker connection of this process, which fails quickly.

    The stock one is created for every task and blocks for seconds if Redis is unavailable.
    """
    return connect(**QUICK)


def connect(**options: Any) -> Broker:
    """Return a new broker; if it is Redis, its connections have these options."""
    broker = get_broker()
    pool = getattr(broker.connection, "connection_pool", None)
    if pool is not None and not Conf.DJANGO_REDIS:  # whose pool the cache shares
        pool.connection_kwargs.update(options)
    return broker


LOOK_EVERY_S = 0.2
ASK_EVERY_S = 0.002


class Listener:
    """Waits on the database connection of its thread."""

    def __init__(self) -> None:
        self._listening_on: Any = None
        self._version = _data_version()

    def close(self) -> None:
        # The server would keep notifications for a connection that reads none.
        if self._is_listening():
            with suppress(DatabaseError), connection.cursor() as cursor:
                cursor.execute("UNLISTEN *")

    def wait(self) -> None:
        """Return when it is time to look for work: after a notification, or after a moment."""
        if connection.vendor == "postgresql" and not connection.in_atomic_block:
            self._listen()
        else:
            self._poll()

    def _listen(self) -> None:
        if not self._is_listening():
            with connection.cursor() as cursor:
                cursor.execute("LISTEN webhooks_core")
            self._listening_on = connection.connection
            return  # an earlier notification was missed
        with connection.wrap_database_errors:
            notifies = self._listening_on.notifies(timeout=LOOK_EVERY_S, stop_after=1)
            for notification in notifies:
                clock.catch_up(float(notification.payload or 0))

    def _poll(self) -> None:
        until, before = time.monotonic() + LOOK_EVERY_S, self._version
        while time.monotonic() < until and self._version == before:
            time.sleep(ASK_EVERY_S)
            self._version = _data_version()

    def _is_listening(self) -> bool:
        # The thread may have a new connection since.
        return (
            self._listening_on is not None
            and self._listening_on is connection.connection
        )


def _data_version() -> int:
    """Return a number that changes when another connection has written to this database.

    Without Django's cursor, which would cost ten times the query itself.
    """
    if connection.vendor != "sqlite":
        return 0
    connection.ensure_connection()
    with connection.wrap_database_errors:
        row = connection.connection.execute("PRAGMA data_version").fetchone()
    return int(row[0])
