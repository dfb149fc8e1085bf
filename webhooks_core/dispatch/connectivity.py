"""The guard against our own outage: without a network nothing is tried, so nothing is counted.

Pure but for chance: time is a parameter, and whoever owns the sockets does what is asked here.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.url_policy import is_local
from webhooks_core.outcomes import REACHED, UNREACHED, Outcome

WINDOW = timedelta(seconds=60)
PROBE_EVERY = timedelta(seconds=2)
PROBES = 8
# An attempt all the same: receivers that are gone for good must come to their end too.
TRY_ONE_EVERY = timedelta(minutes=10)


class ProbeTarget(NamedTuple):
    """A receiver that waits for the network; connecting to it tells whether it is back."""

    url: str
    networks: AllowedNetworks


class Connectivity:
    """What the attempts of a shift tell of its machine's network.

    It is away when within a minute attempts to two hosts of two owners, none of them on this
    machine, all failed before they arrived, and none arrived.
    """

    def __init__(self, offline_since: datetime | None = None) -> None:
        self.offline_since = offline_since
        self._failed: dict[tuple[str, str], datetime] = {}
        self._held: dict[tuple[str, str], ProbeTarget] = {}
        self._probed_at = offline_since
        self._tried_at: datetime | None = None

    @property
    def is_offline(self) -> bool:
        return self.offline_since is not None

    def record(
        self, owner: str, url: str, outcome: Outcome | None, now: datetime
    ) -> bool:
        """Learn from the end of an attempt; tell whether it shows that the network is back."""
        if outcome in REACHED and not self.is_offline and not self._failed:
            return False  # as nearly always
        if is_local(url):
            return False
        if outcome in UNREACHED:
            self._failed[owner, _host(url)] = now
        elif outcome in REACHED:
            self._failed.clear()
            return self.is_offline
        return False

    def is_suspect(self, now: datetime) -> bool:
        """Tell whether everything that was tried failed; the rest of the engine may know more."""
        if self.is_offline:
            return False
        recent = [it for it, at in self._failed.items() if now - WINDOW < at <= now]
        owners, hosts = ({it[n] for it in recent} for n in (0, 1))
        return len(owners) > 1 and len(hosts) > 1

    def mark_offline(self, now: datetime) -> None:
        self.offline_since = self._tried_at = now
        self._probed_at = None

    def mark_online(self) -> None:
        self.offline_since = None
        self._failed.clear()
        self._held.clear()

    def postpones(self, owner: str, url: str, reach: AllowedNetworks) -> bool:
        """Tell whether attempts to a url are postponed now."""
        if not self.is_offline or is_local(url):
            return False
        self._held[owner, _host(url)] = ProbeTarget(url, reach)
        return True

    def trial_queue(self, lanes: Sequence[int], now: datetime) -> int | None:
        """Return the lane that may make one attempt now and then; mostly None."""
        if not self.is_offline or not lanes:
            return None
        if self._tried_at is None:
            # An earlier shift lost it, and shifts are short: would each begin with an attempt,
            # a long outage would disable its receivers.
            self._tried_at = now - TRY_ONE_EVERY * random.random()  # noqa: S311
        if _is_within(self._tried_at, TRY_ONE_EVERY, now):
            return None
        self._tried_at = now
        return random.choice(lanes)  # noqa: S311 - so that not always the same one pays

    def probe_targets(self, now: datetime) -> list[ProbeTarget]:
        """Return whom to connect to now, those first of whom nothing bad is known."""
        if not self.is_offline or not self._held:
            return []
        if _is_within(self._probed_at, PROBE_EVERY, now):
            return []
        self._probed_at = now
        keys = random.sample(list(self._held), len(self._held))
        keys.sort(key=lambda key: key in self._failed)
        chosen = [self._held[key] for key in keys[:PROBES]]
        self._held.clear()  # who still waits is held again within a second
        return chosen


def _is_within(at: datetime | None, time: timedelta, now: datetime) -> bool:
    return at is not None and at <= now < at + time


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
