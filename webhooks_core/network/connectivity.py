"""Detection of our own outage: without a network no attempt is made, so none is counted.

Pure but for chance: time is a parameter, and the caller opens the connections.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.errors import Outcome
from webhooks_core.network.url_policy import is_local

UNREACHED = frozenset({Outcome.DNS, Outcome.CONNECT})
# A receiver that answered anything, or took too long, was reachable.
REACHED = frozenset({Outcome.OK, Outcome.HTTP, Outcome.TLS, Outcome.TIMEOUT})

WINDOW = timedelta(seconds=60)
PROBE_EVERY = timedelta(seconds=2)
MAX_PROBES = 8
# One attempt is made all the same: deliveries to receivers that no longer exist must end too.
TRIAL_EVERY = timedelta(minutes=10)


class ProbeTarget(NamedTuple):
    """A receiver with postponed attempts; a connection to it shows that the network is back."""

    url: str
    networks: AllowedNetworks


class Connectivity:
    """What a dispatcher's attempts show about the network of its machine.

    The network is lost when within a minute attempts to two hosts of two owners, none of them on
    this machine, all failed before they reached a receiver, and none reached one.
    """

    def __init__(self) -> None:
        self.is_offline = False
        self._failed: dict[tuple[str, str], datetime] = {}
        self._postponed: dict[tuple[str, str], ProbeTarget] = {}
        self._probed_at = self._tried_at = datetime.min.replace(tzinfo=UTC)

    def record(
        self, owner: str, url: str, outcome: Outcome | None, now: datetime
    ) -> None:
        """Record the end of an attempt."""
        if outcome in REACHED and (self._failed or self.is_offline):
            if not is_local(url):
                self.mark_online()
        elif outcome in UNREACHED and not is_local(url):
            self._failed[owner, _host(url)] = now

    def has_lost_network(self, now: datetime) -> bool:
        """Return True if the network is lost from now on: every attempt has failed."""
        recent = [key for key, at in self._failed.items() if now - WINDOW < at]
        owners, hosts = ({key[part] for key in recent} for part in (0, 1))
        if self.is_offline or min(len(owners), len(hosts)) < 2:
            return False
        self.is_offline, self._tried_at = True, now
        self._probed_at = now - PROBE_EVERY
        return True

    def mark_online(self) -> None:
        self.is_offline = False
        self._failed.clear()
        self._postponed.clear()

    def postpones(self, owner: str, url: str, networks: AllowedNetworks) -> bool:
        """Return True if attempts to a url are postponed now."""
        if not self.is_offline or is_local(url):
            return False
        self._postponed[owner, _host(url)] = ProbeTarget(url, networks)
        return True

    def trial_queue(self, queues: Sequence[int], now: datetime) -> int | None:
        """Return the queue that may make one attempt, every TRIAL_EVERY; otherwise None."""
        if not self.is_offline or not queues or now < self._tried_at + TRIAL_EVERY:
            return None
        self._tried_at = now
        return random.choice(queues)  # noqa: S311 - so that it is not always the same one

    def probe_targets(self, now: datetime) -> list[ProbeTarget]:
        """Return the receivers to connect to now: some of those with postponed attempts."""
        if not self._postponed or now < self._probed_at + PROBE_EVERY:
            return []
        self._probed_at = now
        targets = list(self._postponed.values())
        self._postponed.clear()  # attempts that still wait are postponed again within a second
        return random.sample(targets, min(len(targets), MAX_PROBES))


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
