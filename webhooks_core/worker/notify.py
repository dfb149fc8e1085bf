"""Calling the drain. A call is only a hint: losing one delays work by a sweep, no longer."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache

import structlog
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django_q.brokers import Broker, get_broker
from django_q.conf import Conf

from webhooks_core.models import DispatcherLease, EngineState
from webhooks_core.worker import listener

DRAIN = "webhooks_core.tasks.dispatch"
# A call that was not followed by a shift within this time is made again.
CALL_AGAIN_AFTER = timedelta(seconds=5)
QUICK = {"socket_connect_timeout": 0.25, "socket_timeout": 0.5, "retry": None}

log = structlog.stdlib.get_logger(__name__)


class _Rings:
    """Whom one transaction is to ring, and when each has work: None is at once."""

    def __init__(self) -> None:
        self._at: dict[int, datetime | None] = {}

    def add(self, endpoint_ids: Sequence[int], at: datetime | None) -> None:
        for pk in endpoint_ids:
            known = self._at.get(pk, at)
            self._at[pk] = min(known, at) if known and at else None

    # Not a partial: to log what a robust hook raised, Django wants a function's name.
    def ring_all(self) -> None:
        together: dict[datetime | None, list[int]] = defaultdict(list)
        for pk, at in self._at.items():
            together[at].append(pk)
        for at, endpoint_ids in together.items():
            notify(endpoint_ids, at=at)


_rings = threading.local()


def notify_on_commit(
    endpoint_ids: Sequence[int], *, at: datetime | None = None
) -> None:
    """Ring once the caller's transaction has committed; whatever fails then fails nobody.

    All that one transaction publishes rings once. A savepoint that is rolled back takes the
    hook along that was made in it, and leaves one that was made before: that rings too many.
    """
    rings: _Rings | None = getattr(_rings, "open", None)
    if rings is None or not _is_pending(rings):
        rings = _rings.open = _Rings()
        rings.add(endpoint_ids, at)
        transaction.on_commit(rings.ring_all, robust=True)
    else:
        rings.add(endpoint_ids, at)


def _is_pending(rings: _Rings) -> bool:
    hooks = transaction.get_connection().run_on_commit
    return any(
        getattr(hook, "__self__", None) is rings for _, hook, _ in reversed(hooks)
    )


def notify(endpoint_ids: Sequence[int], *, at: datetime | None = None) -> None:
    """Tell the lanes of these endpoints when they have work, and call a drain if none runs.

    Runs after the commit, so that no caller's transaction holds the hot rows.
    """
    listener.notify(endpoint_ids, at=at or timezone.now())
    wake_dispatcher()


def wake_dispatcher(*, at_work: int = 0) -> bool:
    """Queue a drain unless more than `at_work` shifts are, or one is called already.

    Tells whether one was queued. A shift at work looks at the lanes many times a second.
    """
    now = timezone.now()
    if DispatcherLease.objects.live(now).count() > at_work:
        return False
    stale = Q(woken_at=None) | Q(woken_at__lt=now - CALL_AGAIN_AFTER)
    in_future = Q(woken_at__gt=now + CALL_AGAIN_AFTER)  # the clock was set back
    if EngineState.objects.filter(stale | in_future).update(woken_at=now):
        return enqueue(DRAIN)
    # `manage.py flush` removes the row; without it nobody would ever be called again.
    _, is_new = EngineState.objects.get_or_create(pk=1, defaults={"woken_at": now})
    return is_new and enqueue(DRAIN)


def enqueue(task: str) -> bool:
    """Queue a task; a broker that is away is logged and otherwise ignored."""
    try:
        from django_q.tasks import async_task  # fails where django_q is not installed

        async_task(task, broker=_broker())
    except Exception as error:  # noqa: BLE001 - a hint may fail in any way and fails nobody
        _broker.cache_clear()
        log.warning("wake-up failed", task=task, error=type(error).__name__)
        return False
    return True


@cache
def _broker() -> Broker:
    """Return one broker connection for the process, which gives up quickly.

    The stock one is made anew for every task and blocks for seconds when Redis is away.
    """
    broker = get_broker()
    pool = getattr(broker.connection, "connection_pool", None)
    if pool is not None and not Conf.DJANGO_REDIS:  # whose pool the cache shares
        pool.connection_kwargs.update(QUICK)
    return broker
