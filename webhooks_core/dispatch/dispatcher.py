"""The dispatcher: a loop of some seconds that claims, sends and records what is due.

The calling thread uses the database; the sender's thread uses the network. Nothing is sent
before its claim is committed, and no request is made inside a transaction.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

import structlog
from django.db import connection, transaction

from webhooks_core.conf import RUN_S
from webhooks_core.database.clock import clock
from webhooks_core.database.outages import is_outage, reason
from webhooks_core.dispatch import leases
from webhooks_core.dispatch.claims import OpenClaims
from webhooks_core.dispatch.queues import LEASE_BATCH, LeasedQueues
from webhooks_core.dispatch.results import ResultRecorder
from webhooks_core.dispatch.sender import Sender
from webhooks_core.models import DispatcherLease, EndpointQueue
from webhooks_core.network.connectivity import Connectivity
from webhooks_core.network.transport import OutgoingRequest
from webhooks_core.upkeep.housekeeping import Housekeeping
from webhooks_core.worker import notify
from webhooks_core.worker.listener import Listener

# Wait for what is due within this time. Longer than the period of a sweep and the interval of the
# scheduler together, so that no retry is late because there is no dispatcher.
LINGER = timedelta(seconds=95)
BUSY_TICK_S = 0.02
RENEW_EVERY_S = 3.0
# How long to wait for a notification between two rounds of housekeeping.
RESIDENT_WAIT_S, WAIT_S = 1.0, 0.05
DATABASE_PAUSE_S = 0.5
# New objects before the next collection of garbage; Python's own threshold is 700 or 2,000.
GARBAGE_THRESHOLD = 20_000
# Results are kept in memory while the database is unavailable; the task's time-out is the end.
DATABASE_RETRY_S = 60.0

log = structlog.stdlib.get_logger(__name__)


def dispatch(
    *,
    stop: Callable[[], bool] = lambda: False,
    linger: timedelta = LINGER,
    run_s: float = RUN_S,
    resident: bool = False,
) -> int:
    """Send what is due, and what falls due within `linger`; return the number of attempts.

    Returns 0 immediately if every slot is taken, or if a resident dispatcher leaves no work. Ends
    after `run_s` seconds, or soon after `stop()` returns True: claims that have not been started
    are released, open requests are awaited. A `resident` dispatcher waits for work that is not
    published yet, and wakes a successor.
    """
    if resident and not leases.is_dispatcher_wanted():
        return 0
    if (lease := leases.acquire()) is None:
        return 0
    with _frozen_heap(), Sender() as sender, closing(Listener()) as listener:
        # Only one dispatcher stays resident.
        is_resident = resident and lease.slot == 0
        dispatcher = Dispatcher(lease, sender, listener, stop, linger, is_resident)
        attempts = dispatcher.run(run_s)
    # A commit between the last check and the release saw a live dispatcher, and woke none.
    if not stop() and (resident or _has_work_within(linger, lease)):
        notify.wake_dispatcher()
    return attempts


@contextmanager
def _frozen_heap() -> Iterator[None]:
    """Exempt all objects that exist now from garbage collection, and collect less often.

    The collector would traverse all of Django several times a second: a tenth of a delivery's cost.
    What an attempt creates is freed without it.
    """
    if not gc.isenabled():
        yield
        return
    gc.freeze()
    thresholds = gc.get_threshold()
    gc.set_threshold(thresholds[0] and GARBAGE_THRESHOLD)  # 0 is for off
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def _has_work_within(linger: timedelta, lease: DispatcherLease) -> bool:
    """Return True if a queue that this lease may take is due soon."""
    due = EndpointQueue.objects.due(clock.now() + linger, lease=lease.pk)
    return due.exists()


@dataclass(eq=False)
class Dispatcher:
    """One run of the loop: claim, send and record until the time is over."""

    lease: DispatcherLease
    sender: Sender
    listener: Listener
    stop: Callable[[], bool]
    linger: timedelta
    is_resident: bool
    _is_in_doubt: bool = field(default=False, init=False)
    _has_more_due: bool = field(default=False, init=False)
    _is_notified: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        lease, connectivity = self.lease, Connectivity(self.lease.offline_since)
        self._queues = queues = LeasedQueues(lease)
        self._claims = OpenClaims(lease, queues, connectivity)
        self._recorder = ResultRecorder(lease, queues, self._claims, connectivity)
        self._housekeeping = Housekeeping(
            lease, queues, connectivity, self.sender, self.linger
        )

    def run(self, run_s: float) -> int:
        until = time.monotonic() + run_s
        try:
            while not self.stop() and not self._is_lost:
                # What it was notified of at the end would wait until the successor has started.
                if time.monotonic() >= until and not self._is_notified:
                    break
                if not self._retry_while_unavailable(self.work):
                    break
            self._finish(isolate_until=until + run_s)
        finally:
            self._retry_while_unavailable(self._release_lease)
        return self._recorder.attempts

    def work(self) -> bool:
        """Do one round; return False if there is no work to stay for."""
        requests = self._claim()
        self.sender.submit(requests)
        has_recorded = self._recorder.record()
        self._housekeeping.run_if_due(has_more_due=self._has_more_due)
        if not self._receive(may_wait=not has_recorded):
            return True  # notified
        self._housekeeping.watch_network()
        if self._claims or self._recorder.unrecorded:
            return True
        if self._queues.suspected() and not self._queues.due(clock.now()):
            return False  # suspects are sent alone, when all else has ended
        return self._expects_work()

    def _claim(self) -> list[OutgoingRequest]:
        now = clock.now()
        is_known, self._is_notified = self._is_notified, False
        leased = self._queues.lease_due(now, is_known=is_known)
        self._has_more_due = leased == LEASE_BATCH
        self.sender.release_waiting(self._queues.pop_stopped())
        return self._claims.claim_due(now)

    def _receive(self, *, may_wait: bool = False) -> bool:
        """Wait a moment for results; without claims wait for work, and return False if notified.

        Results are written one round after they came: then the next requests are already claimed,
        and the sender works on them in the meantime. Those that a claim waits for are written now.
        """
        if self._claims:
            # Queues that are not leased yet do not wait behind receivers that hang.
            wait_s = 0.0 if self._has_more_due else BUSY_TICK_S
            results = self.sender.collect(wait_s=wait_s)
            if self._recorder.receive(results):
                self.sender.mark_reached()
            if self._recorder.is_awaited:
                self._recorder.record()
        elif may_wait and not self._queues.due(clock.now()) and self._idle_wait():
            # Such rounds may follow each other: the lease must not expire during them.
            self._housekeeping.renew_lease(after_s=2 * RENEW_EVERY_S)
            return False
        self._housekeeping.renew_lease(after_s=RENEW_EVERY_S)
        return True

    def _record_and_receive(self) -> None:
        is_locked = bool(self._recorder.unrecorded) and not self._recorder.record()
        self._receive()
        if is_locked and not self._claims:
            time.sleep(WAIT_S)

    def _idle_wait(self) -> bool:
        """Wait until a queue is due or it is time for housekeeping; return True if one is due."""
        is_long = self.is_resident and not self._recorder.unrecorded
        until = time.monotonic() + (RESIDENT_WAIT_S if is_long else WAIT_S)
        next_at = self._queues.next_at()
        while time.monotonic() < until and not self.stop():
            self.listener.wait()
            # The last measurement may be behind the time of the notification.
            now = clock.measure()
            self._is_notified = self._queues.has_due(now)
            if self._is_notified or (next_at and next_at <= now):
                return True
        return False

    def _expects_work(self) -> bool:
        """Return True if work is due soon, in any queue that this dispatcher may lease."""
        self._housekeeping.release_far_queues()
        return (
            self.is_resident
            or bool(self._queues)
            or _has_work_within(self.linger, self.lease)
        )

    def _finish(self, *, isolate_until: float) -> None:
        """Let a successor start, await open requests, send suspects, and release the queues."""
        self.sender.release_unstarted()
        if not self._is_lost:
            self._retry_while_unavailable(self._hand_over)
        while self._claims or self._recorder.unrecorded:
            if not self._retry_while_unavailable(self._record_and_release):
                break
        if not self._is_lost:
            self._retry_while_unavailable(partial(self._isolate, isolate_until))
            self._retry_while_unavailable(self._release_idle)

    def _hand_over(self) -> None:
        # The successor starts at once, and expires leases that seem to be over.
        self._housekeeping.renew_lease(after_s=0)
        leases.release_slot(self.lease)
        self._release_idle()
        if self.is_resident and not self.stop():
            notify.wake_dispatcher()

    def _record_and_release(self) -> None:
        self._record_and_receive()
        self._release_idle()

    def _isolate(self, until: float) -> None:
        """Send suspects one by one: a successor serves the others, and nothing is in flight."""
        while self._claims or self._recorder.unrecorded or self._send_suspect(until):
            self._record_and_receive()
        self._queues.forget_suspects(clock.now())

    def _send_suspect(self, until: float) -> bool:
        if self.stop() or time.monotonic() > until:
            return False
        requests = self._claims.claim_suspect(clock.now())
        self.sender.submit(requests)
        return bool(requests)

    def _release_idle(self) -> None:
        """Release the queues without claims, and wake a successor if there is more work."""
        idle = [queue.pk for queue in self._queues.idle()]
        self._queues.release(idle)
        if idle and not self.stop() and _has_work_within(self.linger, self.lease):
            notify.wake_dispatcher()

    def _release_lease(self) -> None:
        leases.release(self.lease, attempts=self._recorder.attempts)

    @property
    def _is_lost(self) -> bool:
        return self._housekeeping.is_lease_lost

    def _retry_while_unavailable(self, step: Callable[[], bool | None]) -> bool:
        """Do a step of database work; while the database is unavailable, try again.

        Returns False if the step returns False, the lease is lost, or the database is still
        unavailable after DATABASE_RETRY_S. The next dispatcher then treats open claims as
        interrupted.
        """
        until = time.monotonic() + DATABASE_RETRY_S
        while True:
            try:
                if self._is_in_doubt:
                    self._reconcile()
                return step() is not False
            except leases.LeaseLostError:
                self._housekeeping.is_lease_lost = True
                return False
            except Exception as error:
                if not is_outage(error):
                    raise
                log.warning("database unavailable", error=reason(error))
                self._is_in_doubt = True
                if time.monotonic() > until or connection.in_atomic_block:
                    return False
                connection.close()
                time.sleep(DATABASE_PAUSE_S)

    def _reconcile(self) -> None:
        """Read what the database kept of the last commits. Raises LeaseLostError."""
        with transaction.atomic():
            leases.lock_after_outage(self.lease)
            self._queues.reload(clock.now())
            unrecorded = [claim.pk for claim, _ in self._recorder.unrecorded]
            self._claims.release_unconfirmed(unrecorded=unrecorded)
        self._is_in_doubt = False
