"""The dispatcher: a loop that claims, sends and records what is due, until it is stopped.

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
from math import inf

import structlog
from django.db import Error, connection

from webhooks_core.conf import webhook_settings
from webhooks_core.database.clock import clock
from webhooks_core.database.outages import is_outage, reason
from webhooks_core.dispatch import leases, notify, queues
from webhooks_core.dispatch.claims import OpenClaims
from webhooks_core.dispatch.notify import Listener
from webhooks_core.dispatch.queues import LEASE_BATCH, LeasedQueues
from webhooks_core.dispatch.results import ResultRecorder
from webhooks_core.dispatch.sender import Sender
from webhooks_core.models import DispatcherLease, EndpointQueue
from webhooks_core.network.connectivity import Connectivity

# Wait for what is due within this time. Longer than the period of a sweep and the interval of the
# scheduler together, so that no retry is late because there is no dispatcher.
LINGER = timedelta(seconds=95)
# Only one dispatcher stays until it is stopped. Others help it with what is due, and for so long:
# they leave their worker to other tasks, and come back if there is more work.
HELP_S = 20.0
BUSY_TICK_S = 0.02
RENEW_EVERY_S, EXPIRE_EVERY_S, REPAIR_EVERY_S = 3.0, 1.0, 20.0
# Results are kept while the database is unavailable for so long; what has no result then is repeated.
DATABASE_RETRY_S, DATABASE_PAUSE_S = 10.0, 0.5
# New objects before the next collection of garbage; Python's own threshold is 700 or 2,000.
GARBAGE_THRESHOLD = 20_000

log = structlog.stdlib.get_logger(__name__)


def dispatch(
    *,
    stop: Callable[[], bool] = lambda: False,
    linger: timedelta = LINGER,
    resident: bool = False,
) -> int:
    """Send what is due, and what falls due within `linger`; return the number of attempts.

    Returns 0 immediately if every slot is taken. Ends soon after `stop()` returns True: claims that
    have not been started are released, open requests are awaited. A `resident` dispatcher ends in
    no other way, unless the database goes away, or another one is resident already.
    """
    if (lease := leases.acquire()) is None:
        return 0
    is_resident, run_s = resident and lease.slot == 0, inf
    if resident and not is_resident:
        linger, run_s = timedelta(0), HELP_S
    with _frozen_heap(), Sender() as sender, closing(Listener()) as listener:
        attempts = Dispatcher(
            lease, sender, listener, stop, linger, is_resident, run_s
        ).run()
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


class Timer:
    """Says when something is due again."""

    def __init__(self, every_s: float, *, is_due: bool = False) -> None:
        self._every_s = every_s
        self._at = -inf if is_due else time.monotonic()

    def is_due(self) -> bool:
        now = time.monotonic()
        if now - self._at < self._every_s:
            return False
        self._at = now
        return True


@dataclass(eq=False)
class Dispatcher:
    """One run of the loop, with one lease."""

    lease: DispatcherLease
    sender: Sender
    listener: Listener
    stop: Callable[[], bool]
    linger: timedelta
    is_resident: bool
    run_s: float = inf
    _has_more_due: bool = field(default=False, init=False)
    # What the database keeps of the last commits is unknown: another run reads it.
    _is_in_doubt: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        lease, self._connectivity = self.lease, Connectivity()
        self._queues = LeasedQueues(lease)
        self._claims = OpenClaims(lease, self._queues, self._connectivity)
        self._recorder = ResultRecorder(
            lease, self._queues, self._claims, self._connectivity
        )
        self._renewal = Timer(RENEW_EVERY_S)
        self._expiry, self._repair = Timer(EXPIRE_EVERY_S), Timer(REPAIR_EVERY_S)
        self._help = Timer(EXPIRE_EVERY_S, is_due=True)
        self._end = Timer(self.run_s)

    def run(self) -> int:
        """Work until there is a reason to stop, and end what is open; return the attempts."""
        try:
            self._work_until_stopped()
            self._while_available(self.drain)
        except leases.LeaseLostError:
            log.warning("dispatcher lease lost", lease=self.lease.pk)
        finally:
            self._while_available(lambda: leases.release(self.lease))
        return self._recorder.attempts

    def _work_until_stopped(self) -> None:
        try:
            while not self._is_stopping():
                self.work()
        except Error as error:
            self._note_outage(error)

    def _is_stopping(self) -> bool:
        return self.stop() or self._end.is_due() or self._is_done()

    def _is_done(self) -> bool:
        """Return True if nothing is open, and nothing will be due soon."""
        if self.is_resident or self._claims or self._recorder.unrecorded:
            return False
        self._release_idle(near=self.linger)
        return not (self._queues or _has_work_within(self.linger, self.lease))

    def work(self) -> None:
        """Do one round. Results are written a round after they came: first more is claimed."""
        self.claim_and_send()
        self._recorder.record()
        self.tick()
        self.receive()  # last: what it waited for is claimed at once

    def claim_and_send(self) -> None:
        now = clock.now()
        self._has_more_due = self._queues.lease_due(now) == LEASE_BATCH
        self.sender.submit(self._claims.claim_due(now))

    def receive(self) -> None:
        """Wait a moment for results or, without claims, for work."""
        if self._claims:
            # Queues that are not leased yet do not wait behind receivers that hang.
            wait_s = 0.0 if self._has_more_due else BUSY_TICK_S
            self._recorder.receive(self.sender.collect(wait_s=wait_s))
        elif not (self._queues.claimable(clock.now()) or self._is_done()):
            self.listener.wait()

    def tick(self) -> None:
        """Renew the lease, watch the network, and do now and then what is not urgent."""
        if self._renewal.is_due():
            leases.renew(self.lease)
        self._watch_network()
        if self._expiry.is_due():
            # After a suspension of the machine this very lease seems dead until it is renewed.
            leases.expire_dead(spare=self.lease)
            self._release_idle(near=self.linger)
        if self._has_more_due and self._help.is_due():
            self._call_for_help()
        if self.lease.slot == 0 and self._repair.is_due():
            queues.repair(clock.now())

    def drain(self) -> None:
        """Start nothing more; record what is open, and let others have the queues."""
        self.sender.stop()
        while self._claims or self._recorder.unrecorded:
            self._recorder.receive(self.sender.collect(wait_s=BUSY_TICK_S))
            self._recorder.record()
            if not self._is_in_doubt:
                self._release_idle()
            if self._renewal.is_due():
                leases.renew(self.lease)

    def _release_idle(self, near: timedelta | None = None) -> None:
        """Release the queues without claims and, if `near` is given, without work until then."""
        until = clock.now() + near if near is not None else None
        busy = {result.queue for _, result in self._recorder.unrecorded}
        self._queues.release(keep=busy, near=until)

    def _call_for_help(self) -> None:
        """Wake another dispatcher: there are more due queues than this one leases at once."""
        live = DispatcherLease.objects.live().count()
        if live < webhook_settings.DISPATCHERS:
            notify.wake_dispatcher(at_work=live)

    def _watch_network(self) -> None:
        """Postpone all attempts while this machine has no network, and probe for it."""
        now, network = clock.now(), self._connectivity
        if network.has_lost_network(now):
            log.error("network lost", lease=self.lease.pk)
        if not network.is_offline:
            return
        for target in network.probe_targets(now):
            self.sender.probe(target.url, target.networks)
        if self.sender.has_reached():
            network.mark_online()
            log.warning("network restored", lease=self.lease.pk)

    def _while_available(self, step: Callable[[], None]) -> None:
        """Do a step of the end; while the database is unavailable, try again for a while."""
        until = time.monotonic() + DATABASE_RETRY_S
        while True:
            try:
                return step()
            except Error as error:
                self._note_outage(error)
                if time.monotonic() > until:
                    raise
                connection.close()
                time.sleep(DATABASE_PAUSE_S)

    def _note_outage(self, error: Error) -> None:
        """Raise an error that is not an outage of the database."""
        if not is_outage(error) or connection.in_atomic_block:
            raise error
        log.warning("database unavailable", error=reason(error))
        self._is_in_doubt = True
