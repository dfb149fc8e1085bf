"""The heartbeat: a task that passes through the pusher, a worker and the monitor of a cluster.

The times are in memory that all its processes share, without a lock: a process that is killed
while it writes blocks no other.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
import uuid
from contextlib import suppress
from math import inf
from typing import Any

import structlog
from django.db import Error
from django.utils import timezone
from django_q.brokers import Broker
from django_q.conf import Conf
from django_q.signing import SignedPackage

from webhooks_core.database.outages import reason
from webhooks_core.worker import notify, processes, shutdown

PAUSE_S = 1.0
# At most so much silence counts between two looks: on a busy machine, or one that was suspended,
# the observer itself did not run.
MAX_STEP_S = 1.0
ACK_ID = "heartbeat"
# Two processes whose ids differ by a multiple of this would share a place.
PLACES = 1024

log = structlog.stdlib.get_logger(__name__)


class SharedTime:
    """A time on the monotonic clock, shared with processes that are forked later; 0 for never."""

    def __init__(self) -> None:
        self._bytes = mmap.mmap(-1, 8)

    def touch(self) -> None:
        self._bytes[:] = struct.pack("d", time.monotonic())

    @property
    def at(self) -> float:
        return float(struct.unpack("d", self._bytes[:])[0])


class Silence:
    """Counts the seconds since a shared time has changed in which the observer itself ran."""

    def __init__(self, shared: SharedTime) -> None:
        self._shared, self._seen = shared, shared.at
        self._seconds, self._updated_at = 0.0, time.monotonic()

    def update(self, *, is_excused: bool = False) -> float:
        """Return the length of the silence; call it at least once a second.

        The time since the last call does not count if it is excused.
        """
        now, at = time.monotonic(), self._shared.at
        step, self._updated_at = min(now - self._updated_at, MAX_STEP_S), now
        has_changed, self._seen = at != self._seen, at
        if has_changed:
            self._seconds = 0.0
        elif not is_excused:
            self._seconds += step
        return self._seconds


class RunningTasks:
    """Which processes run a task, and how long they may: as (pid, end) at a place for each."""

    def __init__(self) -> None:
        self._bytes = mmap.mmap(-1, PLACES * 16)

    def begin(self, **_: Any) -> None:
        self._write(time.monotonic() + (Conf.TIMEOUT or inf))

    def end(self, **_: Any) -> None:
        self._write(0)

    def _write(self, end: float) -> None:
        place = os.getpid() % PLACES * 16
        self._bytes[place : place + 16] = struct.pack("qd", os.getpid(), end)

    def count(self) -> int:
        """Return how many tasks run; those of dead processes, and overdue ones, do not."""
        now = time.monotonic()
        rows = struct.iter_unpack("qd", self._bytes[:])
        return sum(end > now and processes.is_alive(pid) for pid, end in rows)


acknowledged, sentinel, main = SharedTime(), SharedTime(), SharedTime()
running_tasks = RunningTasks()


def heartbeat() -> None:
    """Wake a dispatcher if none is live, say because the machine that ran the only one is frozen."""
    if not shutdown.is_set():
        with suppress(Error):
            notify.wake_dispatcher()


class HeartbeatBroker:
    """A broker that adds heartbeats to the tasks that it hands out.

    The next one follows only when the last one was acknowledged, so that a busy cluster collects
    none. While the queue is unavailable, heartbeats continue.
    """

    def __init__(self, broker: Broker, *, every_s: float, lost_after_s: float) -> None:
        self._broker = broker
        self._every_s = every_s
        self._lost_after_s = lost_after_s  # its worker may have died
        self._sent_at = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def set_stat(self, key: str, value: str, timeout: int) -> None:
        """Store the state of the cluster; the sentinel does so in every round of its loop."""
        sentinel.touch()
        self._broker.set_stat(key, value, timeout)

    def dequeue(self) -> list[tuple[Any, str]]:
        """Return tasks as (acknowledgement id, signed package)."""
        try:
            tasks = list(self._broker.dequeue() or [])
        except Exception as error:  # noqa: BLE001 - a broker may fail in any way
            log.warning("broker unavailable", error=reason(error))
            time.sleep(PAUSE_S)
            tasks = []
        if self._is_heartbeat_due():
            self._sent_at = time.monotonic()
            tasks.append((ACK_ID, _package()))
        return tasks

    def acknowledge(self, ack_id: Any) -> None:
        """Remove a task from the queue; the monitor does so once it has the result."""
        if ack_id == ACK_ID:
            acknowledged.touch()
        else:
            self._broker.acknowledge(ack_id)

    def _is_heartbeat_due(self) -> bool:
        is_lost = acknowledged.at < self._sent_at
        pause_s = self._lost_after_s if is_lost else self._every_s
        return time.monotonic() - self._sent_at > pause_s


def _package() -> str:
    task = {
        "id": uuid.uuid4().hex,
        "name": "heartbeat",
        "func": f"{__name__}.{heartbeat.__name__}",
        "args": (),
        "kwargs": {},
        "started": timezone.now(),
        "save": False,
        "ack_failure": True,
    }
    return str(SignedPackage.dumps(task))
