"""The task cluster: stock django-q2 in a process group of its own, started again when it fails.

Its broker adds heartbeats, by which the watchdog sees that tasks get through.

docs/adr/0067-watchdog-of-the-cluster.md says which failures it sees, and how soon.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from contextlib import suppress
from multiprocessing import get_context
from types import FrameType
from typing import Any

import structlog
from django.db import connections
from django_q.cluster import Cluster
from django_q.conf import Conf
from django_q.signals import post_execute_in_worker, post_spawn, pre_execute

from webhooks_core.worker import heartbeat, notify, shutdown
from webhooks_core.worker.heartbeat import HeartbeatBroker, Silence

LOOK_EVERY_S = 0.1

# A start fails if its processes end sooner than this.
MIN_RUN_S = 10
FAILED_STARTS = 4
GRACE_S = 30
# Tasks run while the sentinel waits for a database or a queue that fails: 60 s by default.
STUCK_FACTOR = 2.4

log = structlog.stdlib.get_logger(__name__)


class ClusterFailedError(Exception):
    """The task processes could not be kept running; the message says why."""


class Watchdog:
    """Forks the main process of a cluster, and kills its group if no task gets through.

    On SIGTERM or SIGINT `shutdown.is_set()` turns true for the running tasks, and the cluster
    finishes the tasks that it has taken. What is not done after GRACE_S, or at a second signal,
    is killed. The cluster holds the read end of a pipe, and dies with the only write end.
    """

    def __init__(self, *, unresponsive_after_s: float) -> None:
        self._limit_s = unresponsive_after_s
        self._must_hurry = False
        self._failed_starts = 0
        self._pipe = os.pipe()
        self._processes: Any = get_context("fork")

    def run(self, *, once: bool = False) -> None:
        """Work until a stop is requested, or, with `once`, until the waiting tasks are done.

        Raises ClusterFailedError.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        while not shutdown.is_set():
            self._start()
            try:
                fault = self._watch(once=once)
                if not fault:
                    self._finish()
            finally:
                self._kill()
            if fault:
                self._prepare_restart(fault)

    def _prepare_restart(self, fault: str) -> None:
        log.error("task processes restarted", reason=fault)
        has_run = time.monotonic() - self._started_at >= MIN_RUN_S
        self._failed_starts = 0 if has_run else self._failed_starts + 1
        # If a task got through before, what is unavailable now will come back.
        if self._failed_starts == FAILED_STARTS and not heartbeat.acknowledged.at:
            raise ClusterFailedError(f"gave up after {FAILED_STARTS} starts: {fault}")
        end = time.monotonic() + min(self._failed_starts, FAILED_STARTS)
        while time.monotonic() < end and not shutdown.is_set():
            time.sleep(LOOK_EVERY_S)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._must_hurry = shutdown.is_set()
        shutdown.request()

    def _start(self) -> None:
        connections.close_all()
        self._started_at = time.monotonic()
        self._tasks = Silence(heartbeat.acknowledged)
        self._sentinel = Silence(heartbeat.sentinel)
        self._main = Silence(heartbeat.main)
        self._cluster = self._processes.Process(
            target=run_cluster, args=(*self._pipe, self._limit_s)
        )
        self._cluster.start()

    def _watch(self, *, once: bool) -> str:
        """Return why the processes must be restarted; "" if a stop is requested."""
        while not shutdown.is_set():
            if not self._cluster.is_alive():
                return f"the cluster ended with {self._cluster.exitcode}"
            if fault := self._fault():
                return fault
            if once and self._has_started():
                shutdown.request()
            time.sleep(LOOK_EVERY_S)
        return ""

    def _fault(self) -> str:
        is_busy = heartbeat.running_tasks.count() >= Conf.WORKERS
        if self._tasks.update(is_excused=is_busy) > self._limit_s:
            return f"no task was run for {self._limit_s:.0f} s"
        stuck_after = STUCK_FACTOR * self._limit_s
        if self._sentinel.update() > stuck_after:
            return "the sentinel is frozen"
        if self._main.update() > stuck_after:
            return "the main process is frozen"
        return ""

    def _has_started(self) -> bool:
        return heartbeat.main.at > self._started_at

    def _finish(self) -> None:
        """Let the cluster finish the tasks that it has taken. Raises ClusterFailedError."""
        end, was_told = time.monotonic() + GRACE_S, False
        while self._cluster.is_alive():
            if time.monotonic() > end or self._must_hurry:
                raise ClusterFailedError("tasks were cut off: they did not end in time")
            if not was_told and (was_told := self._has_started()):
                self._cluster.terminate()
            time.sleep(LOOK_EVERY_S)

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):  # all have ended
            os.killpg(self._cluster.pid, signal.SIGKILL)
        self._cluster.kill()  # before it has its group
        self._cluster.join()


def run_cluster(reader: int, writer: int, unresponsive_after_s: float) -> None:
    """Run a cluster in a process group of its own, until SIGTERM.

    The group is killed as soon as no process has the write end of the pipe any more.
    """
    os.setsid()
    os.close(writer)
    pre_execute.connect(heartbeat.running_tasks.begin)
    post_execute_in_worker.connect(heartbeat.running_tasks.end)
    post_spawn.connect(_wake_dispatcher)
    try:
        cluster = Cluster(_broker(unresponsive_after_s))
        cluster.start()
    except Exception as error:  # noqa: BLE001 - any error ends this process
        log.error("cluster failed", error=f"{type(error).__name__}: {error}")  # noqa: TRY400 - one line
        sys.exit(1)
    # Not earlier, so that no thread runs while the sentinel is forked.
    threading.Thread(target=_end_with, args=(reader,), daemon=True).start()
    while cluster.sentinel.is_alive():
        time.sleep(LOOK_EVERY_S)
    sys.exit(cluster.sentinel.exitcode != 0)


def _broker(unresponsive_after_s: float) -> HeartbeatBroker:
    broker = notify.connect(retry=None)
    broker.ping()
    return HeartbeatBroker(
        broker,
        every_s=unresponsive_after_s / 20,
        lost_after_s=unresponsive_after_s / 3,
    )


def _wake_dispatcher(**_: Any) -> None:
    """Run in each new worker: it may replace one that held a dispatcher, or the task of one."""
    notify.enqueue(notify.DISPATCH)


def _end_with(reader: int) -> None:
    while not select.select([reader], (), (), LOOK_EVERY_S)[0]:
        heartbeat.main.touch()
    os.killpg(0, signal.SIGKILL)
