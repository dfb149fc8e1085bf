"""The main process of a cluster: stock django-q2, with a broker that adds heartbeats."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from typing import Any

import structlog
from django_q.cluster import Cluster
from django_q.signals import post_execute_in_worker, post_spawn, pre_execute

from webhooks_core.worker import heartbeat, notify
from webhooks_core.worker.heartbeat import HeartbeatBroker

LOOK_EVERY_S = 0.1

log = structlog.stdlib.get_logger(__name__)


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
