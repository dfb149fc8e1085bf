"""One store of counters, as a process uses it: at a steady pace, never once for each request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import structlog

from gateway.chat.metering.budget_counters import NEVER, Counter, CounterKey
from gateway.chat.metering.budget_reports import Reached, highest_share
from gateway.chat.metering.budget_stores import (
    Store,
    Stored,
    StoreUnavailableError,
    Use,
)
from gateway.chat.metrics import budget_store_up

# How long a request waits for a reading. Then the last known counters serve.
LOAD_S = 5.0
# After a failure the store is left alone for so long.
PAUSE_S = 5.0

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class Sharing:
    """Adds what this process has used to a store, and reads what all have used.

    `index` is the place of the store's readings in a counter. `reached` are shares of limits
    that nobody has reported yet.
    """

    store: Store
    index: int
    counters: Mapping[CounterKey, Counter]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    reached: dict[CounterKey, Reached] = field(default_factory=dict)
    began_at: float = NEVER
    _begun: int = 0
    _paused_until: float = NEVER
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_available(self) -> bool:
        return self.clock() >= self._paused_until

    async def read(self, *, in_turn: bool) -> None:
        """Wait for a reading that begins after this call.

        In turn: `every_s` after the last one, so that requests add no reading of their own. A
        caller that is cancelled does not stop the reading, which would count twice.
        """
        asked = self._begun
        try:
            async with asyncio.timeout(LOAD_S):
                if in_turn:
                    pause = self.began_at + self.store.every_s - self.clock()
                    await self.sleep(max(0.0, pause))
                await self._share(asked)
        except TimeoutError:
            self._fail("TimeoutError")

    async def share(self) -> bool:
        """Add and read now; return False if the store is unavailable."""
        await self._share(self._begun)
        return self.is_available

    async def _share(self, asked: int) -> None:
        await asyncio.shield(asyncio.create_task(self._share_once(asked)))

    async def _share_once(self, asked: int) -> None:
        """Add and read, unless it was begun since a caller asked."""
        async with self._lock:
            uses = self._due()
            if self._begun != asked or not uses:
                return
            self._begun += 1
            self.began_at = self.clock()
            try:
                stored = await self.store.add(uses)
            except StoreUnavailableError as error:
                self._fail(str(error))
                return
            self._paused_until = NEVER
            budget_store_up.labels(self.store.name).set(1)
            now = self.clock()
            for key, use in uses.items():
                if counter := self.counters.get(key):  # else it was forgotten meanwhile
                    self._note(key, counter, use, stored[key], now)

    def _note(
        self, key: CounterKey, counter: Counter, use: Use, stored: Stored, now: float
    ) -> None:
        counter.readings[self.index].note(stored.amount, sent=use.total, at=now)
        share = highest_share(counter.budget, stored.amount)
        if stored.reported is not None and stored.reported < share:
            self.reached[key] = Reached(key, counter.budget, stored.amount)

    def _due(self) -> dict[CounterKey, Use]:
        """Return the counters that were used since the last reading, or are being used."""
        uses = {}
        for key, counter in self.counters.items():
            reading = counter.readings[self.index]
            if reading.is_wanted or counter.reserved or counter.shared != reading.sent:
                reading.is_wanted = False
                ends_at = int(counter.ends_at.timestamp())
                uses[key] = Use(counter.shared, reading.sent, ends_at)
        return uses

    def _fail(self, reason: str) -> None:
        log.warning("budgets not shared", store=self.store.name, error=reason)
        budget_store_up.labels(self.store.name).set(0)
        self._paused_until = self.clock() + PAUSE_S
