"""The task cluster: django-q2's own, in a process group that is started again when it fails."""

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

from webhooks_core.database import sessions
from webhooks_core.database.outages import is_outage
from webhooks_core.dispatch import notify
from webhooks_core.models import DispatcherLease
from webhooks_core.worker import processes

LOOK_EVERY_S, ASK_EVERY_S, RESTART_AFTER_S = 0.1, 5.0, 2.0
# A dispatcher runs until it is stopped. Without any for so long, no task gets through.
SILENT_S = 45.0
# How long a cluster that never worked is started again.
PATIENCE_S = 10.0
GRACE_S = 30
# Of a database session, below the time of a lease. A live process does nothing in a transaction for
# milliseconds.
IDLE_MS, LOCK_WAIT_MS = 5_000, 10_000

log = structlog.stdlib.get_logger(__name__)


class ClusterFailedError(Exception):
    """The task processes could not be kept running; the message says why."""


class Parent:
    """Forks the main process of a cluster, and kills its group if no dispatcher is live.

    On SIGTERM or SIGINT `processes.is_stopping()` turns true for the running tasks, and the cluster
    finishes the tasks that it has taken. What is not done after GRACE_S, or at a second signal,
    is killed. The cluster holds the read end of a pipe, and dies with the only write end.
    """

    def __init__(self) -> None:
        self._must_hurry = self._has_worked = False
        self._began_at = time.monotonic()
        self._pipe = os.pipe()
        self._processes: Any = get_context("fork")

    def run(self) -> None:
        """Work until a stop is requested. Raises ClusterFailedError."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        while not processes.is_stopping():
            self._start()
            try:
                if not (fault := self._watch()):
                    self._finish()
            finally:
                self._kill()
            if fault:
                self._prepare_restart(fault)

    def _prepare_restart(self, fault: str) -> None:
        log.error("task processes restarted", reason=fault)
        self._ask()
        # If it has worked before, what is unavailable now will come back.
        if not self._has_worked and time.monotonic() - self._began_at > PATIENCE_S:
            raise ClusterFailedError(f"gave up after {PATIENCE_S:.0f} s: {fault}")
        end = time.monotonic() + RESTART_AFTER_S
        while time.monotonic() < end and not processes.is_stopping():
            time.sleep(LOOK_EVERY_S)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._must_hurry = processes.is_stopping()
        processes.request_stop()

    def _start(self) -> None:
        connections.close_all()
        self._live_at = self._asked_at = time.monotonic()
        self._cluster = self._processes.Process(target=run_cluster, args=self._pipe)
        self._cluster.start()

    def _watch(self) -> str:
        """Return why the processes must be restarted; "" if a stop is requested."""
        while not processes.is_stopping():
            if not self._cluster.is_alive():
                return f"the cluster ended with {self._cluster.exitcode}"
            if time.monotonic() - self._asked_at > ASK_EVERY_S:
                self._ask()
            if time.monotonic() - self._live_at > SILENT_S:
                return f"no dispatcher was live for {SILENT_S:.0f} s"
            time.sleep(LOOK_EVERY_S)
        return ""

    def _ask(self) -> None:
        """Ask whether any dispatcher is live, and wake one if not. A suspended parent saw nothing."""
        was_suspended = time.monotonic() - self._asked_at > 2 * ASK_EVERY_S
        self._asked_at = time.monotonic()
        try:
            is_live = DispatcherLease.objects.live().exists()
            self._has_worked |= is_live
            if not is_live:
                notify.wake_dispatcher()
        except Exception as error:
            if not is_outage(error):
                raise
            connections.close_all()
            is_live = True  # as far as known: without its database nobody works
        if is_live or was_suspended:
            self._live_at = self._asked_at

    def _finish(self) -> None:
        """Let the cluster finish the tasks that it has taken. Raises ClusterFailedError."""
        self._cluster.terminate()
        end = time.monotonic() + GRACE_S
        while self._cluster.is_alive():
            if time.monotonic() > end or self._must_hurry:
                raise ClusterFailedError("tasks were cut off: they did not end in time")
            time.sleep(LOOK_EVERY_S)

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):  # all have ended
            os.killpg(self._cluster.pid, signal.SIGKILL)
        self._cluster.kill()  # before it has its group
        self._cluster.join()


def run_cluster(reader: int, writer: int) -> None:
    """Run a cluster in a process group of its own, until SIGTERM.

    The group is killed as soon as no process has the write end of the pipe any more.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # until the cluster has its own
    if processes.is_stopping():  # the signal has come before
        return
    os.setsid()
    os.close(writer)
    sessions.limit(
        idle_in_transaction_session_timeout=IDLE_MS, lock_timeout=LOCK_WAIT_MS
    )
    try:
        broker = notify.connect(retry=None)
        broker.ping()
        cluster = Cluster(broker)
        cluster.start()
    except Exception as error:  # any error ends this process
        log.error("cluster failed", error=f"{type(error).__name__}: {error}")
        sys.exit(1)
    # Not earlier, so that no thread runs while the sentinel is forked.
    threading.Thread(target=_end_with, args=(reader,), daemon=True).start()
    while cluster.sentinel.is_alive():
        time.sleep(LOOK_EVERY_S)
    sys.exit(cluster.sentinel.exitcode != 0)


def _end_with(reader: int) -> None:
    select.select([reader], (), ())
    os.killpg(0, signal.SIGKILL)
