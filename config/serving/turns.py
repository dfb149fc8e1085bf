"""Callers in turn: a caller with many requests does not hold up the others."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class Turns:
    """A number of places, which the waiting callers get one after the other."""

    def __init__(self, places: int) -> None:
        self._free = places
        # The caller in front is the next; after that it is the last.
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def of(self, caller: Hashable) -> AsyncIterator[None]:
        """Hold a place for a caller while the block runs."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(caller)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, caller: Hashable) -> None:
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():  # it had just got the place
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Give the place to the next caller that still waits."""
        while self._waiting:
            caller = next(iter(self._waiting))
            places = self._waiting.pop(caller)
            place = places.popleft()
            if places:
                self._waiting[caller] = places
            if not place.done():
                place.set_result(None)
                return
        self._free += 1
