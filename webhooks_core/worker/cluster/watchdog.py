"""The parent process of a django-q2 cluster: starts it, watches it, stops it in time."""

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
    STOP_SIGNALS,
    frozen_after_s,
    run_sentinel,
)

LOOK_EVERY_S = 0.1
# A start fails if its processes end sooner than this.
MIN_RUN_S = 10
FAILED_STARTS = 4
GRACE_S = 30
# Longer than the sentinel's loop waits for a database or a queue that fails.
STUCK_AFTER_S = 60

log = structlog.stdlib.get_logger(__name__)


class ClusterFailedError(Exception):
    """The task processes could not be kept running; the message says why."""


class Watchdog(Cluster):  # type: ignore[misc]
    """A cluster that restarts its processes when their sentinel dies or no task gets through.

    On SIGTERM or SIGINT `shutdown.is_set()` turns true for the running tasks, and the cluster
    finishes the tasks that it has taken. What is not done after GRACE_S, or at a second signal,
    is killed.
    """

    def __init__(self, *, unresponsive_after_s: float) -> None:
        super().__init__()
        self._unresponsive_after_s = unresponsive_after_s
        self._must_hurry = False
        self._heartbeat_at = 0.0
        self._reset_timers()

    def _reset_timers(self) -> None:
        self._started_at, self._silence = time.monotonic(), SilenceTimer()
        self._liveness, self._loop_liveness = Liveness(), Liveness()

    def sig_handler(self, _signum: int, _frame: FrameType | None) -> None:
        self._must_hurry = shutdown.is_set()
        shutdown.request()

    def start(self) -> int:
        self.stop_event, self.start_event = Event(), Event()
        self._reset_timers()
        heartbeat.set_idle(is_idle=False)
        self.sentinel = get_mp_context().Process(
            target=run_sentinel,
            args=(
                self.stop_event,
                self.start_event,
                self.cluster_id,
                self.broker,
                self.timeout,
            ),
            kwargs={
                "unresponsive_after_s": self._unresponsive_after_s,
                "loop_liveness": self._loop_liveness,
            },
        )
        # Signals wait until the sentinel ignores them.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        with self._liveness.of_next_child():
            self.sentinel.start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        return os.getpid()

    def run(self, *, once: bool = False) -> None:
        """Work until a stop is requested, or, with `once`, until the waiting tasks are done.

        Raises ClusterFailedError.
        """
        failed = 0
        while not shutdown.is_set():
            self.start()
            if fault := self._watch(once=once):
                log.error("task processes restarted", reason=fault)
                has_run = time.monotonic() - self._started_at >= MIN_RUN_S
                failed = 0 if has_run else failed + 1
                # If a task got through before, what is unavailable now will come back.
                if failed == FAILED_STARTS and not heartbeat.last_heartbeat_at():
                    raise ClusterFailedError(f"gave up after {failed} starts: {fault}")
                self._wait(min(failed, FAILED_STARTS))
        if self.sentinel and not self._finish():
            raise ClusterFailedError("tasks were cut off: they did not end in time")

    def _watch(self, *, once: bool) -> str:
        """Return why the processes must be restarted; "" if a stop is requested."""
        while not shutdown.is_set():
            if not self.sentinel.is_alive():
                return f"the sentinel ended with {self.sentinel.exitcode}"
            if fault := self._fault():
                self._kill()
                return fault
            if once and self.start_event.is_set():
                shutdown.request()
            time.sleep(LOOK_EVERY_S)
        return ""

    def _fault(self) -> str:
        if self._is_unresponsive():
            return f"no task was run for {self._unresponsive_after_s:.0f} s"
        if self._liveness.silent_s() > frozen_after_s(self._unresponsive_after_s):
            return "the sentinel is frozen"
        if self._loop_liveness.silent_s() > STUCK_AFTER_S:
            return "the sentinel is stuck"
        return ""

    def _is_unresponsive(self) -> bool:
        """Return True if a worker was idle for too long and not even a heartbeat reached it."""
        before, self._heartbeat_at = self._heartbeat_at, heartbeat.last_heartbeat_at()
        signal_seen = self._heartbeat_at != before or not heartbeat.has_idle_worker()
        return (
            self._silence.update(signal_seen=signal_seen) > self._unresponsive_after_s
        )

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not shutdown.is_set():
            time.sleep(LOOK_EVERY_S)

    def _finish(self) -> bool:
        """Let the cluster finish the tasks that it has taken; return False if it was killed."""
        end = time.monotonic() + GRACE_S
        if self.sentinel.is_alive():
            self.stop_event.set()
        while (
            self.sentinel.is_alive() and time.monotonic() < end and not self._must_hurry
        ):
            time.sleep(LOOK_EVERY_S)
        return not self._kill()

    def _kill(self) -> bool:
        """Kill the sentinel, and its children with it; return True if it was alive."""
        was_alive: bool = self.sentinel.is_alive()
        self.sentinel.kill()
        self.sentinel.join()
        return was_alive
