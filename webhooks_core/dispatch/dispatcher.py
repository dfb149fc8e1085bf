"""The drain: a shift of some seconds that claims, sends and settles what is due.

The calling thread owns the database; the sender's thread owns the network. Nothing is sent
before its claim is committed, and no network call happens inside a transaction.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import structlog
from django.db import connection, transaction
from django.utils import timezone

from webhooks_core import publishing
from webhooks_core.conf import webhook_settings
from webhooks_core.dispatch import leases, sweep
from webhooks_core.dispatch.claims import TRANSIENT_ERRORS, Claim, OpenClaims
from webhooks_core.dispatch.connectivity import WINDOW, Connectivity
from webhooks_core.dispatch.queues import TAKE_AT_ONCE, LeasedQueues
from webhooks_core.dispatch.rate_limit import SECOND
from webhooks_core.dispatch.results import record_results
from webhooks_core.dispatch.sender import Sender
from webhooks_core.models import DispatcherLease, Endpoint, EndpointQueue, Event
from webhooks_core.network.error_classes import NO_LOCAL_RESOURCES, NO_PORT
from webhooks_core.network.transport import AttemptResult
from webhooks_core.outcomes import Outcome
from webhooks_core.stats import has_arrived_since
from webhooks_core.worker import notify
from webhooks_core.worker.listener import Listener

RUN_S = 20.0
# Due within this time is waited for. Longer than a sweep's period and the scheduler's tick
# together, so that no retry is late for want of a shift.
LINGER = timedelta(seconds=95)
BUSY_TICK_S = 0.02
RENEW_EVERY_S = 3.0
TEND_EVERY_S = 1.0
# A wait in which nothing is tended; short for one who may have nothing to stay for.
DOZE_S, NAP_S = 1.0, 0.05
DATABASE_PAUSE_S = 0.5
# More of these in a row are no passing want: the receiver's address cannot be used from here.
LACKED_AT_MOST = 10
# Answers are kept in memory while the database is away; the task's time-out is the end.
DATABASE_PATIENCE_S = 60.0

log = structlog.stdlib.get_logger(__name__)


def never() -> bool:
    return False


def dispatch(
    *,
    stop: Callable[[], bool] = never,
    linger: timedelta = LINGER,
    run_s: float = RUN_S,
    resident: bool = False,
) -> int:
    """Send what is due, and what falls due within `linger`; return the number of attempts.

    Returns 0 at once when every slot is taken. Leaves after `run_s` seconds, or soon after
    `stop()` turns true: what has not been started is given back, open requests are awaited.
    With `resident` it waits for work that nobody has published yet, and calls a successor.
    """
    shift = leases.acquire()
    if shift is None:
        return 0
    with _only_its_own_garbage(), Sender() as sender, Listener() as doorbell:
        works = Dispatcher(
            shift, sender, doorbell, stop=stop, linger=linger, resident=resident
        )
        attempts = works.run(run_s)
    # A commit between our last look and the end of the shift found us alive and did not call.
    if not stop() and (resident or due_by(timezone.now() + linger, shift)):
        notify.wake_dispatcher()
    return attempts


@contextmanager
def _only_its_own_garbage() -> Iterator[None]:
    """Spare the collector all that was there before the shift.

    It would look through the whole of Django several times a second: a tenth of a delivery's cost.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def due_by(time: datetime, shift: DispatcherLease) -> bool:
    """Tell whether a free lane, or one of this shift's, has work by a time, or gets some."""
    due = EndpointQueue.objects.due(time, lease=shift.pk)
    return due.exists() or Event.objects.fanning_out().exists()


def _shielded(chore: Callable[[], object]) -> bool:
    """Do what is no delivery, and may fail without holding up any; tell whether it did much."""
    try:
        return bool(chore())
    except TRANSIENT_ERRORS:
        raise
    except Exception as error:
        log.exception(
            "housekeeping failed", chore=chore.__name__, error=type(error).__name__
        )
        return False


class Dispatcher:
    def __init__(
        self,
        shift: DispatcherLease,
        sender: Sender,
        doorbell: Listener,
        *,
        stop: Callable[[], bool],
        linger: timedelta,
        resident: bool,
    ) -> None:
        self._shift = shift
        self._sender = sender
        self._doorbell = doorbell
        self._stop = stop
        self._linger = linger
        # One who stays is enough.
        self._resident = resident and shift.slot == 0
        self._lanes = LeasedQueues(shift)
        self._network = Connectivity(shift.offline_since)
        self._claims = OpenClaims(shift, self._lanes, self._network)
        self._unsettled: list[tuple[Claim, AttemptResult]] = []
        self._renewed = time.monotonic()
        self._tended = 0.0
        self._attempts = 0
        self._lost = False
        self._busy = False
        self._in_doubt = False

    def run(self, run_s: float) -> int:
        until = time.monotonic() + run_s
        try:
            while time.monotonic() < until and not self._stop() and not self._lost:
                if not self._guarded(self._work):
                    break
            self._leave()
        finally:
            self._guarded(lambda: leases.release(self._shift, attempts=self._attempts))
        return self._attempts

    def _work(self) -> bool:
        """Look, claim, send, settle: one round. False when there is nothing to stay for."""
        now = timezone.now()
        self._busy = self._lanes.lease_due(now) == TAKE_AT_ONCE
        self._sender.submit(self._claims.claim_due(now))
        if not self._round():
            return True  # called: what else there is to do can wait
        self._watch_network()
        self._tend()
        return bool(self._claims) or self._expects_work(timezone.now())

    def _round(self) -> bool:
        """Wait for answers for a moment and write them down; False when called meanwhile."""
        if self._claims:
            self._receive(self._sender.collect(wait_s=BUSY_TICK_S))
        elif not self._lanes.due(timezone.now()) and self._doze():
            # It may have been in vain, and again: the lease must not run out over it.
            self._renew(every_s=2 * RENEW_EVERY_S)
            return False
        self._settle()
        self._renew()
        return True

    def _doze(self) -> bool:
        """Wait until a lane has work, or something else is to be done; tell whether one has."""
        until = time.monotonic() + (DOZE_S if self._resident else NAP_S)
        next_at = self._lanes.next_at()
        while time.monotonic() < until and not self._stop():
            self._doorbell.wait()
            now = timezone.now()
            if (next_at and next_at <= now) or self._lanes.has_due(now):
                return True
        return False

    def _tend(self) -> None:
        """Do now and then what has no hurry."""
        now = time.monotonic()
        if now - self._tended > TEND_EVERY_S:
            if self._busy:
                self._call_another()
            # A large fan-out goes on at every round until it is done.
            self._tended = 0.0 if _shielded(publishing.continue_fan_outs) else now
            if _shielded(sweep.is_due):
                # After the machine slept, a sweep would bury this very shift.
                self._renew(every_s=0)
                _shielded(sweep.sweep_if_due)
            self._release_far(timezone.now())

    def _call_another(self) -> None:
        """Ask for help while lanes wait that we have no hands for."""
        at_work = DispatcherLease.objects.live(timezone.now()).count()
        if at_work < webhook_settings.DISPATCHERS:
            notify.wake_dispatcher(at_work=at_work)

    def _expects_work(self, now: datetime) -> bool:
        """Tell whether anything is due soon, in our lanes or in free ones, or may come."""
        self._release_far(now)
        return self._resident or bool(self._lanes) or self._is_near()

    def _release_far(self, now: datetime) -> None:
        """Release lanes that have no work within the time that we would linger."""
        near = now + self._linger
        self._lanes.release(
            lane.pk
            for lane in self._lanes.values()
            if not lane.claimed
            and (lane.next_check_at is None or lane.next_check_at > near)
        )

    def _receive(self, answers: list[AttemptResult]) -> None:
        now = timezone.now()
        for it in answers:
            claim, answer = self._claims.pop(it.key), self._own_up(it)
            self._unsettled.append((claim, answer))
            self._adapt(claim.endpoint, answer, now)
            owner, url = claim.endpoint.owner, claim.endpoint.url
            outcome = answer.outcome if answer.proves_network else None
            if self._network.record(owner, url, outcome, now):
                self._sender.mark_reached()

    def _own_up(self, answer: AttemptResult) -> AttemptResult:
        """Pause a lane for which this machine lacked something.

        What may be the receiver's address is a failure at last.
        """
        lane = self._lanes[answer.lane]
        if answer.error not in {NO_LOCAL_RESOURCES, NO_PORT}:
            lane.lacked = 0
            return answer
        if answer.error == NO_PORT:
            lane.lacked += 1
            if lane.lacked > LACKED_AT_MOST:
                return answer._replace(outcome=Outcome.CONNECT)
        lane.not_before = timezone.now() + SECOND
        return answer

    def _watch_network(self) -> None:
        """Postpone all attempts while this machine has no network, and look for it."""
        now = timezone.now()
        if self._network.is_offline:
            for held in self._network.probe_targets(now):
                self._sender.probe(held.url, held.networks)
            if self._sender.has_reached():
                self._network.mark_online()
                leases.set_offline_since(self._shift, offline_since=None)
                log.warning("network restored", lease=self._shift.pk)
        elif self._network.is_suspect(now):
            if has_arrived_since(now - WINDOW):
                self._network.mark_online()
                return
            self._network.mark_offline(now)
            leases.set_offline_since(self._shift, offline_since=now)
            log.error("network lost", lease=self._shift.pk)

    def _adapt(self, endpoint: Endpoint, answer: AttemptResult, now: datetime) -> None:
        """Give quick receivers wider windows, slow ones the narrowest."""
        lane = self._lanes[answer.lane]
        if answer.outcome is None or answer.is_slow:
            lane.narrow()
        elif lane.has_room and lane.is_due(now):
            lane.widen(endpoint, answer.duration_ms)

    def _settle(self) -> None:
        if not self._unsettled:
            return
        now = timezone.now()
        settled = record_results(self._shift, self._unsettled, now=now)
        for _, answer in self._unsettled:
            if answer.outcome is None:  # given back
                self._lanes[answer.lane].schedule(now)
        for it in settled:
            if it.retry_at:
                self._lanes[it.answer.lane].schedule(it.retry_at)
        self._attempts += len(settled)
        self._unsettled = []

    def _renew(self, *, every_s: float = RENEW_EVERY_S) -> None:
        if time.monotonic() - self._renewed > every_s:
            self._lost = not leases.renew(self._shift)
            self._renewed = time.monotonic()

    def _leave(self) -> None:
        """Let a successor start, then await what is open and give the lanes back."""
        self._sender.release_unstarted()
        if not self._lost:
            self._guarded(self._hand_over)
        while self._claims or self._unsettled:
            if not self._guarded(self._round_and_release):
                break
        if not self._lost:
            self._guarded(self._release_idle)

    def _hand_over(self) -> None:
        # The successor comes at once, and buries whose lease seems to be over.
        self._renew(every_s=0)
        leases.release_slot(self._shift)
        self._release_idle()
        if self._resident and not self._stop():
            notify.wake_dispatcher()

    def _round_and_release(self) -> bool:
        self._round()
        self._release_idle()
        return True

    def _release_idle(self) -> None:
        """Release what has ended, and call a successor for it when there is more to do."""
        # The fence of what is not written yet is its lane.
        unsettled = {answer.lane for _, answer in self._unsettled}
        idle = [
            it.pk
            for it in self._lanes.values()
            if not it.claimed and it.pk not in unsettled
        ]
        self._lanes.release(idle)
        if idle and not self._stop() and self._is_near():
            notify.wake_dispatcher()

    def _is_near(self) -> bool:
        return due_by(timezone.now() + self._linger, self._shift)

    def _guarded(self, work: Callable[[], bool | None]) -> bool:
        """Do database work; while the database is away, keep what we know and try again.

        Returns False when the work said so, or when patience ran out: what was claimed is
        then found by the next shift as interrupted.
        """
        until = time.monotonic() + DATABASE_PATIENCE_S
        while True:
            try:
                if self._in_doubt:
                    self._reconcile()
                return work() is not False
            except leases.LeaseLostError:
                self._lost = True
                return False
            except TRANSIENT_ERRORS as error:
                log.warning("database unavailable", error=type(error).__name__)
                self._in_doubt = True
                if time.monotonic() > until or connection.in_atomic_block:
                    return False
                connection.close()
                time.sleep(DATABASE_PAUSE_S)

    def _reconcile(self) -> None:
        """Learn what the database kept of our last words. Raises LostError."""
        with transaction.atomic():
            leases.lock(self._shift)
            self._lanes.reload(timezone.now())
            self._claims.release_unconfirmed(
                settling=[claim.pk for claim, _ in self._unsettled]
            )
        self._in_doubt = False
