"""The order in which an endpoint's targets are called, and the ejection of failing ones."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.configuration.shapes import LATENCY, ModelEntry, Target

FAILURES_UNTIL_EJECTED = 3
FIRST_EJECTION_S = 5.0
LONGEST_EJECTION_S = 60.0
MAX_KNOWN = 10_000
# How much the newest measurement counts in a target's latency, and the least of it.
NEWEST = 0.2
LEAST_LATENCY_S = 0.001


@dataclass(slots=True)
class Health:
    """The recent failures of a target; times are of a monotonic clock."""

    failures: int = 0
    ejected_until: float = 0.0


@dataclass(slots=True)
class Router:
    """Orders targets: by weight among the healthy, then those that were ejected.

    With `balance: latency` the weight is divided by how long a target took lately, until the
    first chunk of a stream or for a whole answer.

    After FAILURES_UNTIL_EJECTED failures in a row a target is ejected for a time that
    doubles with each further failure; one success makes it healthy again. The only target
    of an endpoint is always called.
    """

    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    _health: dict[tuple[str, str, str], Health] = field(default_factory=dict)
    _latency_s: dict[tuple[str, str, str], float] = field(default_factory=dict)

    def order(self, endpoint: ModelEntry) -> list[Target]:
        """Return the targets in the order in which they are tried."""
        if len(endpoint.targets) == 1:
            return list(endpoint.targets)
        # Efraimidis and Spirakis: sorting by random ** (1 / weight) draws by weight.
        latency_s = self._latencies(endpoint)
        drawn = sorted(
            endpoint.targets,
            key=lambda target: (
                self.chance() ** (latency_s.get(target, 1) / target.weight)
            ),
            reverse=True,
        )
        return sorted(drawn, key=lambda target: self.is_ejected(endpoint, target))

    def is_ejected(self, endpoint: ModelEntry, target: Target) -> bool:
        health = self._health.get(_key(endpoint, target))
        return health is not None and health.ejected_until > self.clock()

    def _latencies(self, endpoint: ModelEntry) -> dict[Target, float]:
        """Return the latency of each target; of one that is not known the best, so that it is tried."""
        if endpoint.balance != LATENCY:
            return {}
        known = {t: self._latency_s.get(_key(endpoint, t)) for t in endpoint.targets}
        best = min((s for s in known.values() if s is not None), default=1.0)
        return {t: best if s is None else s for t, s in known.items()}

    def succeeded(
        self, endpoint: ModelEntry, target: Target, seconds: float = 0.0
    ) -> None:
        """Note a success, and after how many seconds it came."""
        if self._health:
            self._health.pop(_key(endpoint, target), None)
        if endpoint.balance == LATENCY:
            key, seconds = _key(endpoint, target), max(seconds, LEAST_LATENCY_S)
            if len(self._latency_s) >= MAX_KNOWN:
                self._latency_s.clear()
            before = self._latency_s.get(key, seconds)
            self._latency_s[key] = before + NEWEST * (seconds - before)

    def failed(
        self, endpoint: ModelEntry, target: Target, *, retry_after: float = 0.0
    ) -> None:
        """Note a failure; `retry_after` ejects the target at once for so many seconds."""
        if len(self._health) >= MAX_KNOWN:
            self._health.clear()
        health = self._health.setdefault(_key(endpoint, target), Health())
        health.failures += 1
        pause = retry_after
        doublings = health.failures - FAILURES_UNTIL_EJECTED
        if doublings >= 0:
            ejection_s = FIRST_EJECTION_S * 2 ** min(doublings, 8)
            pause = max(pause, min(ejection_s, LONGEST_EJECTION_S))
        health.ejected_until = max(health.ejected_until, self.clock() + pause)


def _key(endpoint: ModelEntry, target: Target) -> tuple[str, str, str]:
    return endpoint.name, target.base_url, target.model
