"""The limits of one caller: requests per minute, and requests at once."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import redis.asyncio
import structlog
from redis.exceptions import RedisError

from gateway.identity import Caller
from webhooks_core.database.outages import reason
from webhooks_core.web.errors import TooManyRequestsError

WINDOW_S = 60
RETRY_BUSY_S = 1
MAX_KNOWN = 100_000
KEY = "signpost:chat:rate"
REDIS_TIMEOUT_S = 0.5
# After a failure Redis is not used for so long: every request would wait for it.
REDIS_PAUSE_S = 5.0

# Counts a request in a window and returns how many there were, this one included.
Count = Callable[[str, int], Awaitable[int]]

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class LocalCount:
    """Counts in this process alone."""

    _window: int = 0
    _counts: Counter[str] = field(default_factory=Counter)

    async def __call__(self, key: str, window: int) -> int:
        if window != self._window or len(self._counts) > MAX_KNOWN:
            self._window, self._counts = window, Counter()
        self._counts[key] += 1
        return self._counts[key]


@dataclass(slots=True)
class SharedCount:
    """Counts in Redis; in this process alone while Redis is unavailable."""

    client: redis.asyncio.Redis
    local: LocalCount = field(default_factory=LocalCount)
    clock: Callable[[], float] = time.monotonic
    _paused_until: float = float("-inf")

    async def __call__(self, key: str, window: int) -> int:
        if self.clock() < self._paused_until:
            return await self.local(key, window)
        try:
            async with self.client.pipeline(transaction=True) as pipeline:
                name = f"{KEY}:{window}:{key}"
                pipeline.incr(name)
                pipeline.expire(name, 2 * WINDOW_S)
                count, _ = await pipeline.execute()
                return int(count)
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("requests counted locally", error=reason(error))
            self._paused_until = self.clock() + REDIS_PAUSE_S
            return await self.local(key, window)


def counter(redis_url: str) -> Count:
    """Return a counter of requests: of all processes through Redis, otherwise of this one."""
    return SharedCount(redis_client(redis_url)) if redis_url else LocalCount()


def redis_client(redis_url: str) -> redis.asyncio.Redis:
    """Return a client that requests do not wait for long."""
    return redis.asyncio.Redis.from_url(
        redis_url,
        socket_timeout=REDIS_TIMEOUT_S,
        socket_connect_timeout=REDIS_TIMEOUT_S,
    )


@dataclass(slots=True)
class Limits:
    """The limits of one key (or one principal, without a key); 0 is no limit.

    `count` counts requests per minute, perhaps for several processes; requests at once are
    counted per process.
    """

    per_minute: int = 0
    at_once: int = 0
    count: Count = field(default_factory=LocalCount)
    clock: Callable[[], float] = time.time
    _running: Counter[str] = field(default_factory=Counter)

    async def admit(self, caller: Caller) -> None:
        """Count a request. Raises TooManyRequestsError."""
        if not self.per_minute:
            return
        window, elapsed = divmod(self.clock(), WINDOW_S)
        if await self.count(_key(caller), int(window)) > self.per_minute:
            raise _too_many(
                f"At most {self.per_minute} requests per minute.",
                retry_after=max(1, math.ceil(WINDOW_S - elapsed)),
            )

    def enter(self, caller: Caller) -> None:
        """Count a running request. Raises TooManyRequestsError."""
        key = _key(caller)
        if self.at_once and self._running[key] >= self.at_once:
            text = f"At most {self.at_once} requests at once."
            raise _too_many(text, retry_after=RETRY_BUSY_S)
        self._running[key] += 1

    def leave(self, caller: Caller) -> None:
        key = _key(caller)
        self._running[key] -= 1
        if self._running[key] <= 0:
            del self._running[key]

    @property
    def running(self) -> int:
        """How many requests run now."""
        return self._running.total()


def _key(caller: Caller) -> str:
    if caller.key_id is not None:
        return f"key:{caller.key_id}"
    return f"{caller.tenant}/{caller.principal}"


def _too_many(text: str, *, retry_after: int) -> TooManyRequestsError:
    return TooManyRequestsError(text, headers={"Retry-After": str(retry_after)})
