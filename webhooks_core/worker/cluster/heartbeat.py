"""The beat: a task that goes the whole way of a task, and shows that the way is open."""

from __future__ import annotations

import mmap
import struct
import time
import uuid
from typing import Any

import structlog
from django.utils import timezone
from django_q.brokers import Broker
from django_q.signing import SignedPackage

# As long as the broker fails, a pusher goes on by itself; then it is made anew.
FAILING_S = 60.0
PAUSE_S = 1.0

_heard = mmap.mmap(-1, 8)
_idle = mmap.mmap(-1, 1)

log = structlog.stdlib.get_logger(__name__)


def heartbeat() -> None:
    """Write down the time; this is the task that a worker runs."""
    _heard[:] = struct.pack("d", time.monotonic())


def last_heartbeat_at() -> float:
    """Return when a worker of this cluster last ran a beat, on the monotonic clock; 0 for never."""
    return float(struct.unpack("d", _heard[:])[0])


def set_idle(*, anybody: bool) -> None:
    """Note whether a worker waits for a task: only then must beats be heard."""
    _idle[0] = anybody


def has_idle_worker() -> bool:
    return _idle[0] != 0


class HeartbeatBroker:
    """A broker that slips a beat among the tasks that it hands out, so that beats tell of it too.

    The next one follows only when the one before was heard: a busy cluster collects none. A
    queue that is away makes nobody deaf: beats go on without it.
    """

    def __init__(self, broker: Broker, *, every_s: float, lost_after_s: float) -> None:
        self._broker = broker
        self._every_s = every_s
        self._lost_after_s = lost_after_s  # a worker may have died with it
        self._sent_at = 0.0
        self._failing_since: float | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def dequeue(self) -> list[tuple[Any, str]]:
        """Return tasks as (acknowledgement id, signed package)."""
        tasks = self._take()
        if self._is_time():
            self._sent_at = time.monotonic()
            tasks.append((None, _package()))
        return tasks

    def _take(self) -> list[tuple[Any, str]]:
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
        return tasks

    def _is_time(self) -> bool:
        age = time.monotonic() - self._sent_at
        pause = (
            self._every_s
            if last_heartbeat_at() >= self._sent_at
            else self._lost_after_s
        )
        return age > pause


def _package() -> str:
    task = {
        "id": uuid.uuid4().hex,
        "name": "beat",
        "func": f"{__name__}.{heartbeat.__name__}",
        "args": (),
        "kwargs": {},
        "started": timezone.now(),
    }
    return str(SignedPackage.dumps(task))
