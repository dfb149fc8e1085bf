"""Connections that are kept for a while: each for the next request on its route."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

KEEP_MOST = 512


class Keepable(Protocol):
    @property
    def is_reusable(self) -> bool: ...

    def abort(self) -> None: ...


R = TypeVar("R", bound=Hashable)
C = TypeVar("C", bound=Keepable)


class KeptConnections(Generic[R, C]):
    """The kept connections of one event loop. The last one kept on a route is used first.

    Each is kept for `for_s` seconds, and KEEP_MOST of them: one more closes the oldest one of the
    route that was not used for longest. `forget` is called now and then with the loop's time; it
    returns False if there is nothing more to forget.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        for_s: float,
        forget: Callable[[float], bool],
    ) -> None:
        self._loop, self._for_s, self._forget = loop, for_s, forget
        self._kept: dict[R, list[tuple[float, C]]] = {}
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None

    def take(self, route: R) -> C | None:
        """Return a connection, which is then no longer kept; None if there is none."""
        kept = self._kept.pop(route, None)
        while kept:
            _, connection = kept.pop()
            self._count -= 1
            if connection.is_reusable:
                if kept:
                    self._kept[route] = kept
                return connection
            connection.abort()
        return None

    def keep(self, route: R, connection: C) -> None:
        """Keep a connection for the next request, or close it if it cannot serve one."""
        if not connection.is_reusable:
            connection.abort()
            return
        until = self._loop.time() + self._for_s
        self._kept.setdefault(route, []).append((until, connection))
        self._count += 1
        if self._count > KEEP_MOST:
            self._drop_oldest()
        self.start_timer()

    def _drop_oldest(self) -> None:
        route, kept = next(iter(self._kept.items()))
        kept.pop(0)[1].abort()
        self._count -= 1
        if not kept:
            del self._kept[route]

    def start_timer(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(self._for_s / 2, self._expire)

    def _expire(self) -> None:
        """Close what was kept long enough; without anything kept there is no timer."""
        now, self._timer = self._loop.time(), None
        for route, kept in list(self._kept.items()):
            while kept and kept[0][0] <= now:
                kept.pop(0)[1].abort()
                self._count -= 1
            if not kept:
                del self._kept[route]
        if self._forget(now) or self._kept:
            self.start_timer()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for kept in self._kept.values():
            for _, connection in kept:
                connection.abort()
        self._kept.clear()
