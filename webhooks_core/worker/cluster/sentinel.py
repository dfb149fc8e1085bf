"""django-q2's sentinel, mended: its children die with it, and a killed one makes nobody deaf."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from multiprocessing import Process, active_children
from multiprocessing.synchronize import Event
from typing import Any
from uuid import UUID

import structlog
from django_q.brokers import Broker
from django_q.cluster import Sentinel as StockSentinel
from django_q.pusher import pusher
from django_q.worker import worker

from webhooks_core.worker import notify
from webhooks_core.worker.cluster import heartbeat
from webhooks_core.worker.cluster.heartbeat import HeartbeatBroker
from webhooks_core.worker.cluster.liveness import Liveness
from webhooks_core.worker.cluster.locks import harden, timer

# A process without a pulse for this part of `unresponsive_after_s` is killed, and replaced like any other
# that died.
FROZEN_PART, LEAST_FROZEN_S = 0.4, 5.0

log = structlog.stdlib.get_logger(__name__)

FROM_OUTSIDE = {signal.SIGINT, signal.SIGTERM}


class Sentinel(StockSentinel):  # type: ignore[misc]
    """Starts the workers, the pusher and the monitor, and replaces those that die.

    It and they are deaf to SIGINT and SIGTERM: a terminal and a service manager send these to
    every process at once, and only the process that started the cluster may decide to stop.
    """

    def __init__(
        self,
        stop: Event,
        started: Event,
        *args: Any,
        unresponsive_after_s: float,
        turns: Liveness,
    ) -> None:
        super().__init__(
            MonitoredStopEvent(stop, self._look), started, *args, start=False
        )
        self._unresponsive_after_s = unresponsive_after_s
        self._turns = turns
        for number in FROM_OUTSIDE:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FROM_OUTSIDE)
        harden(self.task_queue)
        harden(self.result_queue)
        # What waited while nobody worked goes out now, not at the first tick of the schedule.
        notify.enqueue(notify.DRAIN)
        self.start()

    def spawn_process(self, target: Any, *args: Any) -> Process:
        pulse = Liveness()
        with pulse.of_next_child():
            process: Process = super().spawn_process(target, *args)
        process.terminate = process.kill  # type: ignore[method-assign]  # SIGTERM is ignored
        process.pulse = pulse  # type: ignore[attr-defined]
        return process

    def _look(self) -> None:
        """Kill whoever is frozen, tell whether anybody waits for work, and that we go on."""
        self._turns.beat_once()
        frozen_after = frozen_after_s(self._unresponsive_after_s)
        for process in (*self.pool, self.monitor, self.pusher):
            if process.pulse.silent_s() > frozen_after:
                log.error("frozen task process killed", pid=process.pid)
                process.kill()
        heartbeat.set_idle(anybody=any(it.timer.value == -1 for it in self.pool))

    def spawn_pusher(self) -> Process:
        broker = HeartbeatBroker(
            self.broker,
            every_s=self._unresponsive_after_s / 20,
            lost_after_s=self._unresponsive_after_s / 3,
        )
        return self.spawn_process(pusher, self.task_queue, self.event_out, broker)

    def reincarnate(self, process: Process) -> None:
        """Replace a process that died. It may have died with a shift, or the call for one."""
        super().reincarnate(process)
        notify.enqueue(notify.DRAIN)

    def spawn_worker(self) -> None:
        busy = timer("f", -1)
        self.spawn_process(
            worker, self.task_queue, self.result_queue, busy, self.timeout
        )


class MonitoredStopEvent:
    """The wish to stop, as the sentinel waits for it: once in every turn of its loop."""

    def __init__(self, event: Event, look: Callable[[], None]) -> None:
        self._event = event
        self._look = look

    def __getattr__(self, name: str) -> Any:
        return getattr(self._event, name)

    def wait(self, seconds: float) -> bool:
        self._look()
        return self._event.wait(seconds)


def frozen_after_s(unresponsive_after_s: float) -> float:
    return max(FROZEN_PART * unresponsive_after_s, LEAST_FROZEN_S)


def run_sentinel(
    stop: Event,
    started: Event,
    cluster_id: UUID,
    broker: Broker | None,
    timeout_s: int | None,
    unresponsive_after_s: float,
    turns: Liveness,
) -> None:
    """Be the sentinel's process: work until `stop` is set, and leave no child behind."""
    try:
        Sentinel(
            stop,
            started,
            cluster_id,
            broker,
            timeout_s,
            unresponsive_after_s=unresponsive_after_s,
            turns=turns,
        )
    except Exception as error:  # noqa: BLE001 - whatever it was ends this process, and is told
        log.error("sentinel failed", error=f"{type(error).__name__}: {error}")  # noqa: TRY400 - one line
        sys.exit(1)
    finally:
        for child in active_children():
            child.kill()
