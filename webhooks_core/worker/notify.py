"""Notifications that queues have work. They are hints: a lost one delays work until the sweep."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import structlog
from django.db import connection, transaction
from django.db.models import Q
from django_q.brokers import Broker, get_broker
from django_q.conf import Conf

from webhooks_core.database.clock import clock
from webhooks_core.database.outages import reason
from webhooks_core.database.statements import execute
from webhooks_core.models import DispatcherLease, EndpointQueue, EngineState

DISPATCH = "webhooks_core.tasks.dispatch"
# If no dispatcher has started within this time, the task is queued again.
WAKE_AGAIN_AFTER = timedelta(seconds=5)
MAX_QUEUED = 100
QUICK: dict[str, Any] = {
    "socket_connect_timeout": 0.25,
    "socket_timeout": 0.5,
    "retry": None,
}

# One statement and one commit, which need not be on disk when it returns: the sweep repairs what
# a crash of the server loses. Queues that are due earlier anyway need no notification.
_MARK_DUE = (
    "WITH due AS (SELECT COALESCE(%s, clock_timestamp()) AS at), marked AS ("
    "UPDATE webhooks_core_endpointqueue SET next_due_at = due.at FROM due WHERE endpoint_id = ANY(%s)"
    " AND (next_due_at IS NULL OR next_due_at > due.at) RETURNING 1)"
    " SELECT pg_notify('webhooks_core', ''), set_config('synchronous_commit', 'off', true)"
    " FROM marked LIMIT 1"
)

log = structlog.stdlib.get_logger(__name__)


class _Notification:
    """The queues that one transaction notifies, and when each has work: None is at once."""

    def __init__(self) -> None:
        self._due: dict[int, datetime | None] = {}

    def add(self, endpoint_ids: Sequence[int], at: datetime | None) -> None:
        for pk in endpoint_ids:
            known = self._due.get(pk, at)
            self._due[pk] = min(known, at) if known and at else None

    # Not a partial: to log what a robust hook raised, Django needs a function's name.
    def send(self) -> None:
        by_time: dict[datetime | None, list[int]] = defaultdict(list)
        for pk, at in self._due.items():
            by_time[at].append(pk)
        for at, endpoint_ids in by_time.items():
            notify(endpoint_ids, at=at)


_last = threading.local()  # the notification of this thread's last transaction


def notify_on_commit(
    endpoint_ids: Sequence[int], *, at: datetime | None = None
) -> None:
    """Notify once the caller's transaction has committed; an error then does not fail the caller.

    One transaction sends one notification, and one more after the rollback of a savepoint: that
    may have taken the first one with it.
    """
    # A commit and every rollback put a new list here.
    hooks = transaction.get_connection().run_on_commit
    is_open = bool(hooks) and getattr(_last, "hooks", None) is hooks
    if not is_open:
        _last.hooks, _last.notification = hooks, _Notification()
    _last.notification.add(endpoint_ids, at)
    if not is_open:
        transaction.on_commit(_last.notification.send, robust=True)


def recall_on_commit(endpoint_ids: Sequence[int]) -> None:
    """Once the transaction has committed, have dispatchers drop what they have not started."""
    # Not a partial, as above.
    transaction.on_commit(lambda: recall(endpoint_ids), robust=True)


def recall(endpoint_ids: Sequence[int]) -> None:
    """Have dispatchers drop what they have not started, of endpoints that receive nothing more.

    Only queues with a dispatcher are written.
    """
    leased = EndpointQueue.objects.filter(leased_by__isnull=False)
    leased.mark_due(endpoint_ids, at=clock.in_sql())


def notify(endpoint_ids: Sequence[int], *, at: datetime | None = None) -> None:
    """Tell the queues of these endpoints when they have work; wake a dispatcher if none is live.

    Runs after the commit, so that no caller's transaction locks the queues.
    """
    _mark_due(endpoint_ids, at=at)
    wake_dispatcher()


def _mark_due(endpoint_ids: Sequence[int], *, at: datetime | None) -> None:
    """Set the due time of queues, and notify the dispatchers that listen."""
    # Inside a transaction, `synchronous_commit` would apply to the caller's commit.
    if connection.vendor != "postgresql" or connection.in_atomic_block:
        EndpointQueue.objects.mark_due(endpoint_ids, at=at or clock.in_sql())
        return
    execute(_MARK_DUE, at, list(endpoint_ids))


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
    in_future = Q(woken_at__gt=now + WAKE_AGAIN_AFTER)  # the clock was set back
    if EngineState.objects.filter(stale | in_future).update(woken_at=now):
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
        async_task(task, broker=broker)
    except Exception as error:  # noqa: BLE001 - a hint may fail in any way
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
