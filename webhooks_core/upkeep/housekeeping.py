"""Housekeeping: what a dispatcher does besides deliveries."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import structlog

from webhooks_core.conf import webhook_settings
from webhooks_core.database.clock import clock
from webhooks_core.dispatch import leases
from webhooks_core.dispatch.queues import LeasedQueues
from webhooks_core.dispatch.sender import Sender
from webhooks_core.models import DispatcherLease
from webhooks_core.network.connectivity import WINDOW, Connectivity
from webhooks_core.upkeep import sweep
from webhooks_core.upkeep.stats import has_arrived_since
from webhooks_core.worker import notify

EVERY_S = 1.0

log = structlog.stdlib.get_logger(__name__)


@dataclass(eq=False)
class Housekeeping:
    """Renews the lease, watches the network, and does now and then what is not urgent."""

    lease: DispatcherLease
    queues: LeasedQueues
    connectivity: Connectivity
    sender: Sender
    linger: timedelta
    is_lease_lost: bool = False
    _renewed_at: float = field(init=False)
    _done_at: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._renewed_at = time.monotonic()

    def renew_lease(self, *, after_s: float) -> None:
        """Renew the lease if the last renewal is longer ago."""
        if time.monotonic() - self._renewed_at > after_s:
            self.is_lease_lost = not leases.renew(self.lease)
            self._renewed_at = time.monotonic()

    def watch_network(self) -> None:
        """Postpone all attempts while this machine has no network, and probe for it."""
        now = clock.now()
        if self.connectivity.is_offline:
            for target in self.connectivity.probe_targets(now):
                self.sender.probe(target.url, target.networks)
            if self.sender.has_reached():
                self.connectivity.mark_online()
                leases.set_offline_since(self.lease, None)
                log.warning("network restored", lease=self.lease.pk)
        elif self.connectivity.is_suspect(now):
            if has_arrived_since(now - WINDOW):
                self.connectivity.mark_online()
                return
            self.connectivity.mark_offline(now)
            leases.set_offline_since(self.lease, now)
            log.error("network lost", lease=self.lease.pk)

    def run_if_due(self, *, has_more_due: bool) -> None:
        """Wake another dispatcher if more is due, and sweep."""
        now = time.monotonic()
        if now - self._done_at <= EVERY_S:
            return
        if has_more_due:
            live = DispatcherLease.objects.live().count()
            if live < webhook_settings.DISPATCHERS:
                notify.wake_dispatcher(at_work=live)
        _shielded(self._expire_dead)
        self._done_at = now
        if _shielded(sweep.is_due):
            # After a suspension of the machine, the sweep would expire this very lease.
            self.renew_lease(after_s=0)
            _shielded(sweep.sweep_if_due)
        self.release_far_queues()

    def _expire_dead(self) -> int:
        # After a suspension of the machine this very lease seems dead until it is renewed.
        return leases.expire_dead(spare=self.lease)

    def release_far_queues(self) -> None:
        """Release the queues without work in the time that the dispatcher lingers."""
        near = clock.now() + self.linger
        self.queues.release(
            queue.pk
            for queue in self.queues.idle()
            if queue.next_check_at is None or queue.next_check_at > near
        )


def _shielded(step: Callable[[], object]) -> bool:
    """Do a step whose failure must not delay deliveries; return True if it had work to do."""
    try:
        return bool(step())
    except Exception as error:
        if leases.is_general(error):
            raise
        log.exception(
            "housekeeping failed", step=step.__name__, error=type(error).__name__
        )
        return False
