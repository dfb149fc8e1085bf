"""A rate limit that also holds for requests at the same moment, in any process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rest_framework.throttling import SimpleRateThrottle

LOCK_S = 1  # then its holder is dead or frozen, and the others go on
PAUSE_S = 0.002


class ExactRateThrottle(SimpleRateThrottle):
    """DRF's throttle, which reads, changes and writes a list in the cache, one request at a time.

    Without a lock, simultaneous requests read the same list and count as one. `scope` names the rate,
    here or in a subclass.
    """

    scope: str

    def __init__(self, scope: str = "") -> None:
        if scope:
            self.scope = scope
        super().__init__()

    def allow_request(self, request: Any, view: Any) -> bool:
        with self.alone(request, view):
            return super().allow_request(request, view)

    @contextmanager
    def alone(self, request: Any, view: Any) -> Iterator[None]:
        """Let one request of this caller count at a time; the others wait at most LOCK_S."""
        if self.rate is None:
            yield
            return
        lock = f"{self.get_cache_key(request, view)}.lock"
        end = time.monotonic() + LOCK_S
        while not (is_ours := self.cache.add(lock, 1, LOCK_S)):
            if time.monotonic() >= end:
                break
            time.sleep(PAUSE_S)
        try:
            yield
        finally:
            if is_ours:
                self.cache.delete(lock)
