"""Requests per minute, counted for all processes together where there is a Redis."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import redis.asyncio
import structlog
from redis.exceptions import RedisError

from gateway.chat.metering.limits import WINDOW_S, Count, LocalCount

KEY = "signpost:chat:rate"
TIMEOUT_S = 0.5
# So long after a failure it is not asked: every request would wait for it.
AWAY_S = 5.0

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class SharedCount:
    """Counts in Redis; in this process alone while Redis is away."""

    client: redis.asyncio.Redis
    local: LocalCount = field(default_factory=LocalCount)
    clock: Callable[[], float] = time.monotonic
    _away_until: float = float("-inf")

    async def __call__(self, key: str, window: int) -> int:
        if self.clock() < self._away_until:
            return await self.local(key, window)
        try:
            async with self.client.pipeline(transaction=True) as pipeline:
                name = f"{KEY}:{window}:{key}"
                pipeline.incr(name)
                pipeline.expire(name, 2 * WINDOW_S)
                count, _ = await pipeline.execute()
                return int(count)
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("requests counted locally", error=type(error).__name__)
            self._away_until = self.clock() + AWAY_S
            return await self.local(key, window)


def shared_count(redis_url: str) -> Count:
    """Return a counter of requests: for all processes, given a Redis; else for this one."""
    if not redis_url:
        return LocalCount()
    client = redis.asyncio.Redis.from_url(
        redis_url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S
    )
    return SharedCount(client)
