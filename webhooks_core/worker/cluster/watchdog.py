"""The process in front of a django-q2 cluster: starts it, watches it, stops it in time."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing import Event
from types import FrameType

import structlog
from django_q.cluster import Cluster, get_mp_context

from webhooks_core.worker import shutdown
from webhooks_core.worker.cluster import heartbeat
from webhooks_core.worker.cluster.liveness import Liveness, SilenceTimer
from webhooks_core.worker.cluster.sentinel import (
    FROM_OUTSIDE,
    frozen_after_s,
    run_sentinel,
)

LOOK_EVERY_S = 0.1
# An end that comes sooner than this after the start counts as a failed start.
SOON_S = 10
FAILED_STARTS = 4
GRACE_S = 30
# Its loop waits for the database and the queue: for longer than either takes to fail.
STUCK_AFTER_S = 60

log = structlog.stdlib.get_logger(__name__)


class ClusterFailedError(Exception):
    """The task processes could not be kept running; the message says why."""


class Watchdog(Cluster):  # type: ignore[misc]
    """A cluster that starts its processes again when their sentinel dies or no task gets through.

    On SIGTERM or SIGINT the running tasks see `stopping.is_set()`, the cluster finishes what
    it took, and what is not done after GRACE_S is killed. A second signal kills at once.
    """

    def __init__(self, *, unresponsive_after_s: float) -> None:
        super().__init__()
        self._unresponsive_after_s = unresponsive_after_s
        self._hurry = False
        self._started_at = self._heard = 0.0
        self._pulse, self._turns, self._silence = Liveness(), Liveness(), SilenceTimer()

    def sig_handler(self, _signum: int, _frame: FrameType | None) -> None:
        self._hurry = shutdown.is_set()
        shutdown.request()

    def start(self) -> int:
        self.stop_event, self.start_event = Event(), Event()
        self._pulse, self._turns, self._silence = Liveness(), Liveness(), SilenceTimer()
        heartbeat.set_idle(anybody=False)
        self.sentinel = get_mp_context().Process(
            target=run_sentinel,
            args=(
                self.stop_event,
                self.start_event,
                self.cluster_id,
                self.broker,
                self.timeout,
                self._unresponsive_after_s,
                self._turns,
            ),
        )
        # Until the sentinel has made itself deaf to them, signals wait.
        signal.pthread_sigmask(signal.SIG_BLOCK, FROM_OUTSIDE)
        with self._pulse.of_next_child():
            self.sentinel.start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FROM_OUTSIDE)
        self._started_at = time.monotonic()
        return os.getpid()

    def run(self, *, once: bool = False) -> None:
        """Work until told to stop, or, with `once`, until what waits now is done.

        Raises ClusterFailedError.
        """
        failed = 0
        while not shutdown.is_set():
            self.start()
            if trouble := self._watch(once=once):
                log.error("task processes restarted", reason=trouble)
                failed = failed + 1 if self._age() < SOON_S else 0
                # Tasks got through before: what is away now, say the broker, will come back.
                if failed == FAILED_STARTS and not heartbeat.last_heartbeat_at():
                    raise ClusterFailedError(
                        f"gave up after {failed} starts: {trouble}"
                    )
                self._wait(min(failed, FAILED_STARTS))
        if self.sentinel and not self._finish():
            raise ClusterFailedError("tasks were cut off: they did not end in time")

    def _watch(self, *, once: bool) -> str:
        """Return why the processes must be started again; nothing when a stop is asked for."""
        while not shutdown.is_set():
            if not self.sentinel.is_alive():
                return f"the sentinel ended with {self.sentinel.exitcode}"
            if trouble := self._trouble():
                self._kill()
                return trouble
            if once and self.start_event.is_set():
                shutdown.request()
            time.sleep(LOOK_EVERY_S)
        return ""

    def _trouble(self) -> str:
        if self._is_deaf():
            return f"no task was run for {self._unresponsive_after_s:.0f} s"
        if self._pulse.silent_s() > frozen_after_s(self._unresponsive_after_s):
            return "the sentinel is frozen"
        if self._turns.silent_s() > STUCK_AFTER_S:
            return "the sentinel is stuck"
        return ""

    def _is_deaf(self) -> bool:
        """Tell whether somebody waited for tasks so long and not even a beat came through."""
        heard_before, self._heard = self._heard, heartbeat.last_heartbeat_at()
        broken = self._heard != heard_before or not heartbeat.has_idle_worker()
        return self._silence.update(broken=broken) > self._unresponsive_after_s

    def _age(self) -> float:
        return time.monotonic() - self._started_at

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not shutdown.is_set():
            time.sleep(LOOK_EVERY_S)

    def _finish(self) -> bool:
        """Let the cluster end what it took; return whether it did so in time."""
        end = time.monotonic() + GRACE_S
        if self.sentinel.is_alive():
            self.stop_event.set()
        while self.sentinel.is_alive() and time.monotonic() < end and not self._hurry:
            time.sleep(LOOK_EVERY_S)
        return not self._kill()

    def _kill(self) -> bool:
        """End whatever still runs; the sentinel's children die with it. Tell whether any did."""
        was_alive: bool = self.sentinel.is_alive()
        self.sentinel.kill()
        self.sentinel.join()
        return was_alive
