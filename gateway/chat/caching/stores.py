"""Where processes share kept answers: Redis if there is one, else the table of the database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import Protocol, cast

import redis
import redis.asyncio
from django.db import Error, transaction
from django.utils import timezone
from redis.exceptions import RedisError

from gateway.chat.cache_models import CachedAnswer
from gateway.chat.caching.slots import Slot
from gateway.chat.metering.budget_stores import StoreUnavailableError
from gateway.chat.metering.limits import redis_client
from webhooks_core.database.outages import reason
from webhooks_core.web.thread_pool import InThread

NAME = "signpost:answer:"
REMOVED = 500


class Store(Protocol):
    """Kept answers. Both methods raise StoreUnavailableError."""

    async def read(self, slot: Slot) -> bytes | None:
        """Return the answer that is kept in a slot, or None."""

    async def write(self, slot: Slot, body: bytes) -> None:
        """Keep an answer, and remove the oldest above the limit of its model."""


@dataclass(frozen=True, slots=True)
class DatabaseStore:
    """Rows of CachedAnswer: one statement to read, two to keep."""

    in_thread: InThread

    async def read(self, slot: Slot) -> bytes | None:
        try:
            body: bytes | None = await self.in_thread(partial(_read_row, slot))
        except (Error, OSError) as error:
            raise StoreUnavailableError(reason(error)) from error
        return body

    async def write(self, slot: Slot, body: bytes) -> None:
        try:
            await self.in_thread(partial(_write_row, slot, body))
        except (Error, OSError) as error:
            raise StoreUnavailableError(reason(error)) from error


def _read_row(slot: Slot) -> bytes | None:
    rows = CachedAnswer.objects.filter(key=slot.key, expires_at__gt=timezone.now())
    body = rows.values_list("body", flat=True).first()
    return None if body is None else bytes(body)


def _write_row(slot: Slot, body: bytes) -> None:
    expires_at = timezone.now() + timedelta(seconds=slot.settings.ttl_s)
    answer = CachedAnswer(
        key=slot.key,
        tenant=slot.tenant,
        model=slot.model,
        body=body,
        expires_at=expires_at,
    )
    with transaction.atomic():
        CachedAnswer.objects.bulk_create(
            [answer],
            update_conflicts=True,
            unique_fields=["key"],
            update_fields=["body", "expires_at"],
        )
        newest = CachedAnswer.objects.filter(model=slot.model).order_by("-pk")
        first = slot.settings.max_entries
        above = newest.values_list("pk", flat=True)[first : first + REMOVED]
        if pks := list(above):
            CachedAnswer.objects.filter(pk__in=pks).delete()


@dataclass(frozen=True, slots=True)
class RedisStore:
    """A value for each answer, and for each model a sorted set of their names by expiry.

    The names are digests, since they would name tenants and models.
    """

    client: redis.asyncio.Redis

    async def read(self, slot: Slot) -> bytes | None:
        try:
            body = cast("bytes | None", await self.client.get(_name(slot)))
        except (RedisError, OSError, TimeoutError) as error:
            raise StoreUnavailableError(reason(error)) from error
        return body

    async def write(self, slot: Slot, body: bytes) -> None:
        name, index = _name(slot), f"{NAME}index:{_digest(slot.model)}"
        ttl_s, most = slot.settings.ttl_s, slot.settings.max_entries
        now = int(time.time())
        try:
            async with self.client.pipeline(transaction=True) as pipeline:
                pipeline.set(name, body, ex=ttl_s)
                pipeline.zremrangebyscore(index, "-inf", now)
                pipeline.zadd(index, {name: now + ttl_s})
                pipeline.expire(index, ttl_s)
                pipeline.zrange(index, 0, -most - 1)
                *_, above = await pipeline.execute()
            if above:
                await self.client.delete(*above)
                await self.client.zrem(index, *above)
        except (RedisError, OSError, TimeoutError) as error:
            raise StoreUnavailableError(reason(error)) from error


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


def _name(slot: Slot) -> str:
    return f"{NAME}{_digest(slot.tenant)}:{slot.key}"


def store(in_thread: InThread, redis_url: str) -> Store:
    """Return the store of this installation."""
    if redis_url:
        return RedisStore(redis_client(redis_url))
    return DatabaseStore(in_thread)


def forget_answers(redis_url: str, tenant: str) -> None:
    """Remove the answers of a tenant from Redis. Raises RedisError."""
    with redis.Redis.from_url(redis_url) as client:
        for names in _batches(client.scan_iter(f"{NAME}{_digest(tenant)}:*", REMOVED)):
            client.delete(*names)


def _batches(names: Iterator[bytes]) -> Iterator[list[bytes]]:
    while batch := list(islice(names, REMOVED)):
        yield batch
