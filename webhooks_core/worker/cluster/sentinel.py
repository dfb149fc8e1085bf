"""django-q2's sentinel, whose children exit with it and whose locks are released with their holder."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from multiprocessing import Process, active_children
from multiprocessing.synchronize import Event
from typing import Any

import structlog
from django_q.cluster import Sentinel as StockSentinel
from django_q.pusher import pusher
from django_q.worker import worker

from webhooks_core.worker import notify
from webhooks_core.worker.cluster import heartbeat
from webhooks_core.worker.cluster.heartbeat import HeartbeatBroker
from webhooks_core.worker.cluster.liveness import Liveness
from webhooks_core.worker.cluster.locks import replace_locks, shared_number

# A process that is silent for this part of `unresponsive_after_s` is killed; like any other dead
# process it is replaced.
FROZEN_PART, MIN_FROZEN_S = 0.4, 5.0
STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}

log = structlog.stdlib.get_logger(__name__)


class Sentinel(StockSentinel):  # type: ignore[misc]
    """Starts the workers, the pusher and the monitor, and replaces those that die.

    They and this process ignore SIGINT and SIGTERM: a terminal and a service manager send these
    to every process at once, and only the process that started the cluster decides to stop.
    `loop_liveness` shows that this process's loop runs.
    """

    def __init__(
        self,
        stop: Event,
        *args: Any,
        unresponsive_after_s: float,
        loop_liveness: Liveness,
    ) -> None:
        super().__init__(MonitoredStopEvent(stop, self._monitor), *args, start=False)
        self._unresponsive_after_s = unresponsive_after_s
        self._loop_liveness = loop_liveness
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        replace_locks(self.task_queue)
        replace_locks(self.result_queue)
        # What became due while no worker ran is sent now, not at the next scheduled sweep.
        notify.enqueue(notify.DISPATCH)
        self.start()

    def spawn_process(self, target: Any, *args: Any) -> Process:
        liveness = Liveness()
        with liveness.of_next_child():
            process: Process = super().spawn_process(target, *args)
        process.terminate = process.kill  # type: ignore[method-assign]  # SIGTERM is ignored
        process.liveness = liveness  # type: ignore[attr-defined]
        return process

    def _monitor(self) -> None:
        """Signal liveness, kill frozen processes, and store whether a worker is idle."""
        self._loop_liveness.signal()
        frozen_after = frozen_after_s(self._unresponsive_after_s)
        for process in (*self.pool, self.monitor, self.pusher):
            if process.liveness.silent_s() > frozen_after:
                log.error("frozen task process killed", pid=process.pid)
                process.kill()
        is_idle = any(process.timer.value == -1 for process in self.pool)
        heartbeat.set_idle(is_idle=is_idle)

    def spawn_pusher(self) -> Process:
        broker = HeartbeatBroker(
            self.broker,
            every_s=self._unresponsive_after_s / 20,
            lost_after_s=self._unresponsive_after_s / 3,
        )
        return self.spawn_process(pusher, self.task_queue, self.event_out, broker)

    def reincarnate(self, process: Process) -> None:
        """Replace a dead process, which may have held a dispatcher or the task of one."""
        super().reincarnate(process)
        notify.enqueue(notify.DISPATCH)

    def spawn_worker(self) -> None:
        timer = shared_number("f", -1)
        self.spawn_process(
            worker, self.task_queue, self.result_queue, timer, self.timeout
        )


class MonitoredStopEvent:
    """A stop event that calls `monitor` at each wait: once in every round of the sentinel's loop."""

    def __init__(self, event: Event, monitor: Callable[[], None]) -> None:
        self._event = event
        self._monitor = monitor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._event, name)

    def wait(self, seconds: float) -> bool:
        self._monitor()
        return self._event.wait(seconds)


def frozen_after_s(unresponsive_after_s: float) -> float:
    return max(FROZEN_PART * unresponsive_after_s, MIN_FROZEN_S)


def run_sentinel(*args: Any, **options: Any) -> None:
    """Run as the sentinel's process until it is stopped; leave no child behind."""
    try:
        Sentinel(*args, **options)
    except Exception as error:  # noqa: BLE001 - any error ends this process
        log.error("sentinel failed", error=f"{type(error).__name__}: {error}")  # noqa: TRY400 - one line
        sys.exit(1)
    finally:
        for child in active_children():
            child.kill()
