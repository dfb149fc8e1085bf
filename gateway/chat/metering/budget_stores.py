"""Where processes share the counters of budgets: Redis, and the rows of the database."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

import redis
import redis.asyncio
from django.conf import settings
from django.db import Error, connection
from redis.exceptions import RedisError

from gateway.chat.metering.budget_counters import CounterKey
from gateway.chat.metering.limits import redis_client
from webhooks_core.database.outages import reason
from webhooks_core.web.thread_pool import InThread

# How often a process adds what it has used, and reads what all have used.
DATABASE_S, REDIS_S = 1.0, 0.25
NAME = "signpost:budget:"
# A stream that began in a window may end after it.
KEPT_S = 86_400
FORGOTTEN = 1000  # by one command


class Use(NamedTuple):
    """What one process has used of a counter; the store has `sent` of it already."""

    total: int
    sent: int
    ends_at: int  # Unix time of the window's end


class Stored(NamedTuple):
    """What all processes have used of a counter, and the share of its limit that was reported.

    A store that knows no reports says None.
    """

    amount: int
    reported: int | None = None


class StoreUnavailableError(Exception):
    """The store did not answer; its text says why."""


class Store(Protocol):
    """Counters that processes share."""

    name: str
    every_s: float
    # Of the budgets and prices when the counters were read last; "" if the store does not know.
    version: str

    async def add(self, uses: Mapping[CounterKey, Use]) -> Mapping[CounterKey, Stored]:
        """Add what is not sent yet; return what the counters have now.

        Raises StoreUnavailableError: all or nothing was added.
        """


@dataclass(slots=True)
class DatabaseStore:
    """Rows of BudgetCounter: one statement adds to all counters and reads them."""

    in_thread: InThread
    name: str = "database"
    every_s: float = DATABASE_S
    version: str = ""

    async def add(self, uses: Mapping[CounterKey, Use]) -> Mapping[CounterKey, Stored]:
        amounts = {key: use.total - use.sent for key, use in uses.items()}
        try:
            stored: Mapping[CounterKey, Stored]
            stored, self.version = await self.in_thread(partial(add_to_rows, amounts))
        except (Error, TimeoutError, OSError) as error:
            raise StoreUnavailableError(reason(error)) from error
        return stored


def _version_of(table: str) -> str:
    last = "COALESCE(CAST(MAX(updated_at) AS text), '')"
    return f"(SELECT {last} || CAST(COUNT(*) AS text) FROM {table})"  # noqa: S608 - names of ours


# It changes with each budget and price that is saved or deleted.
VERSION = " || ' ' || ".join(
    map(_version_of, ("gateway_chat_budget", "gateway_chat_modelprice"))
)


def version() -> str:
    """Return the version of the budgets and prices in the database. One query."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {VERSION}")
        return str(cursor.fetchone()[0])


def add_to_rows(
    amounts: Mapping[CounterKey, int],
) -> tuple[dict[CounterKey, Stored], str]:
    """Add to counters, and create missing ones; return what each has now, and version().

    One statement, in the order of the keys, so that two processes cannot block each other.
    Raises DatabaseError.
    """
    keys = {key[:3]: key for key in sorted(amounts)}
    if not keys:
        return {}, ""
    values = [value for key in keys.values() for value in (*key, amounts[key])]
    columns = 'budget, subject, "window", tenant, amount, reported'
    rows = ", ".join(["(%s, %s, %s, %s, %s, 0)"] * len(keys))
    statement = (
        f"INSERT INTO gateway_chat_budgetcounter ({columns}) VALUES {rows} "  # noqa: S608 - names of ours
        'ON CONFLICT (budget, subject, "window") DO UPDATE '
        "SET amount = gateway_chat_budgetcounter.amount + excluded.amount "
        f'RETURNING budget, subject, "window", amount, reported, {VERSION}'
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        rows = cursor.fetchall()
    return {keys[row[:3]]: Stored(*row[3:5]) for row in rows}, str(rows[0][5])


@dataclass(slots=True)
class RedisStore:
    """A hash for each counter, with what each process has used.

    A process writes its whole sum, so that a command that is sent twice counts once, and so that a
    Redis that lost its memory learns again what the running processes have used. The names of
    keys are digests: a counter names tenants and principals.
    """

    client: redis.asyncio.Redis
    name: str = "redis"
    every_s: float = REDIS_S
    version: str = ""
    _process: str = field(default_factory=lambda: secrets.token_hex(8))

    async def add(self, uses: Mapping[CounterKey, Use]) -> Mapping[CounterKey, Stored]:
        try:
            async with self.client.pipeline(transaction=True) as pipeline:
                for key, use in uses.items():
                    name = redis_name(key)
                    pipeline.hset(name, self._process, str(use.total))
                    pipeline.expireat(name, use.ends_at + KEPT_S)
                    pipeline.hvals(name)
                replies = await pipeline.execute()
        except (RedisError, OSError, TimeoutError) as error:
            raise StoreUnavailableError(reason(error)) from error
        sums = (sum(map(int, values)) for values in replies[2::3])
        return dict(zip(uses, map(Stored, sums), strict=True))


def redis_name(key: CounterKey) -> str:
    """Return the name of a counter's hash."""
    text = "\n".join((key.budget, key.subject, str(key.window)))
    return NAME + hashlib.sha256(text.encode()).hexdigest()[:40]


def forget(redis_url: str, keys: Iterable[CounterKey]) -> None:
    """Remove counters from Redis, as their rows are removed. Raises RedisError."""
    names = sorted(map(redis_name, keys))
    with redis.Redis.from_url(redis_url, **settings.REDIS_TIMEOUTS) as client:
        for start in range(0, len(names), FORGOTTEN):
            client.delete(*names[start : start + FORGOTTEN])


def stores(in_thread: InThread, redis_url: str) -> tuple[Store, ...]:
    """Return the stores of this installation, the quickest first."""
    database = DatabaseStore(in_thread)
    if not redis_url:
        return (database,)
    return (RedisStore(redis_client(redis_url)), database)
