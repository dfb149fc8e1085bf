"""The heartbeat: a task that passes through the whole cluster, and shows that tasks get through."""

from __future__ import annotations

import mmap
import struct
import time
import uuid
from contextlib import suppress
from datetime import datetime
from typing import Any, cast

import structlog
from django.core.signing import BadSignature
from django.db import DatabaseError
from django.utils import timezone
from django_q.brokers import Broker
from django_q.signing import SignedPackage

from webhooks_core.worker import notify, shutdown

# A pusher tolerates failures of the broker for so long; then it is replaced by a new one.
FAILING_S = 60.0
PAUSE_S = 1.0
# The package of a hint has no arguments, so it is short. Longer packages are not read here.
MAX_HINT_LENGTH = 1000

_last = mmap.mmap(-1, 8)
_idle = mmap.mmap(-1, 1)

log = structlog.stdlib.get_logger(__name__)


def heartbeat() -> None:
    """Store the time; this is the task that a worker runs.

    It also wakes a dispatcher if none is live, say because another machine, which ran the only
    one, is frozen.
    """
    _last[:] = struct.pack("d", time.monotonic())
    if not shutdown.is_set():
        with suppress(DatabaseError):
            notify.wake_dispatcher()


def last_heartbeat_at() -> float:
    """Return when a worker of this cluster last ran a heartbeat, on the monotonic clock; 0 for never."""
    return float(struct.unpack("d", _last[:])[0])


def set_idle(*, is_idle: bool) -> None:
    """Store whether a worker waits for a task: only then are heartbeats expected."""
    _idle[0] = is_idle


def has_idle_worker() -> bool:
    return _idle[0] != 0


class HeartbeatBroker:
    """A broker that adds heartbeats to the tasks that it hands out.

    The next one follows only when the last one has run, so that a busy cluster collects none.
    While the queue is unavailable, heartbeats continue.
    """

    def __init__(self, broker: Broker, *, every_s: float, lost_after_s: float) -> None:
        self._broker = broker
        self._every_s = every_s
        self._lost_after_s = lost_after_s  # its worker may have died
        self._sent_at = 0.0
        self._failing_since: float | None = None
        self._hinted_at: datetime | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def dequeue(self) -> list[tuple[Any, str]]:
        """Return tasks as (acknowledgement id, signed package)."""
        tasks = self._dequeue_tasks()
        if self._is_heartbeat_due():
            self._sent_at = time.monotonic()
            tasks.append((None, _package()))
        return tasks

    def _dequeue_tasks(self) -> list[tuple[Any, str]]:
        try:
            tasks = list(self._broker.dequeue() or [])
        except Exception as error:
            now = time.monotonic()
            self._failing_since = self._failing_since or now
            if now - self._failing_since > FAILING_S:
                raise
            log.warning("broker unavailable", error=type(error).__name__)
            time.sleep(PAUSE_S)
            return []
        self._failing_since = None
        return [task for task in tasks if not self._drops(*task)]

    def _drops(self, ack_id: Any, package: str) -> bool:
        """Return True for a hint that was queued before the last one was handed out.

        The dispatcher that the last one starts sees all that this one is about. So thousands that
        were queued while no cluster ran do not hold up other tasks.
        """
        if not (queued_at := _hint_queued_at(package)):
            return False
        if self._hinted_at and queued_at < self._hinted_at:
            self._broker.acknowledge(ack_id)
            return True
        self._hinted_at = timezone.now()
        return False

    def _is_heartbeat_due(self) -> bool:
        has_run = last_heartbeat_at() >= self._sent_at
        pause_s = self._every_s if has_run else self._lost_after_s
        return time.monotonic() - self._sent_at > pause_s


def _hint_queued_at(package: str) -> datetime | None:
    """Return when the task of a dispatcher was queued; None for any other task."""
    if len(package) > MAX_HINT_LENGTH:
        return None
    with suppress(BadSignature):  # left to the stock code
        task = SignedPackage.loads(package)
        if task["func"] == notify.DISPATCH:
            return cast("datetime", task["started"])
    return None


def _package() -> str:
    task = {
        "id": uuid.uuid4().hex,
        "name": "heartbeat",
        "func": f"{__name__}.{heartbeat.__name__}",
        "args": (),
        "kwargs": {},
        "started": timezone.now(),
    }
    return str(SignedPackage.dumps(task))
