"""Detection of our own outage: without a network no attempt is made, so none is counted.

Pure but for chance: time is a parameter, and the caller opens the connections.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.outcomes import REACHED, UNREACHED, Outcome
from webhooks_core.network.url_policy import is_local

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

    def __init__(self, offline_since: datetime | None = None) -> None:
        self.offline_since = offline_since
        self._failed: dict[tuple[str, str], datetime] = {}
        self._postponed: dict[tuple[str, str], ProbeTarget] = {}
        self._probed_at = offline_since
        self._tried_at: datetime | None = None

    @property
    def is_offline(self) -> bool:
        return self.offline_since is not None

    def record(
        self, owner: str, url: str, outcome: Outcome | None, now: datetime
    ) -> bool:
        """Record the end of an attempt; return True if it shows that the network is back."""
        if outcome in REACHED and not self.is_offline and not self._failed:
            return False  # the common case
        if is_local(url):
            return False
        if outcome in UNREACHED:
            self._failed[owner, _host(url)] = now
        elif outcome in REACHED:
            self._failed.clear()
            return self.is_offline
        return False

    def is_suspect(self, now: datetime) -> bool:
        """Return True if every attempt failed; other dispatchers may have reached one."""
        if self.is_offline:
            return False
        recent = [key for key, at in self._failed.items() if now - WINDOW < at <= now]
        owners, hosts = ({key[part] for key in recent} for part in (0, 1))
        return len(owners) > 1 and len(hosts) > 1

    def mark_offline(self, now: datetime) -> None:
        self.offline_since = self._tried_at = now
        self._probed_at = None

    def mark_online(self) -> None:
        self.offline_since = None
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
        if not self.is_offline or not queues:
            return None
        if self._tried_at is None:
            # An earlier dispatcher lost the network. Dispatchers run for seconds: if each began
            # with an attempt, a long outage would disable its receivers.
            self._tried_at = now - TRIAL_EVERY * random.random()  # noqa: S311
        if _is_within(self._tried_at, TRIAL_EVERY, now):
            return None
        self._tried_at = now
        return random.choice(queues)  # noqa: S311 - so that it is not always the same one

    def probe_targets(self, now: datetime) -> list[ProbeTarget]:
        """Return the receivers to connect to now, first those without a known failure."""
        if not self.is_offline or not self._postponed:
            return []
        if _is_within(self._probed_at, PROBE_EVERY, now):
            return []
        self._probed_at = now
        keys = random.sample(list(self._postponed), len(self._postponed))
        keys.sort(key=lambda key: key in self._failed)
        targets = [self._postponed[key] for key in keys[:MAX_PROBES]]
        self._postponed.clear()  # attempts that still wait are postponed again within a second
        return targets


def _is_within(at: datetime | None, time: timedelta, now: datetime) -> bool:
    return at is not None and at <= now < at + time


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
