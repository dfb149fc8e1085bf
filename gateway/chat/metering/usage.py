"""Records, sums and histograms of completed requests, written in one transaction."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from gateway import configuration
from gateway.chat.budget_models import BudgetCounter
from gateway.chat.context import ChatContext
from gateway.chat.metering.prices import listed
from gateway.chat.models import LoggedRequest, ModelPrice, UsageRecord
from gateway.chat.tokens import Usage

# Upper bounds in seconds; one more bucket counts what is above the last.
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
FIRST_CHUNK, DURATION = "first_chunk", "duration"
# The columns of a record: those of a completed request, those of its usage, and others.
COPIED = (
    *("tenant", "principal", "key_id", "model", "upstream_model", "request_id"),
    *("status", "error_status", "streamed", "estimated", "ending"),
    *("session", "agent", "parent_agent"),
)
TOKENS = (
    *("prompt_tokens", "completion_tokens", "cached_tokens"),
    *("cache_write_tokens", "reasoning_tokens"),
)
COLUMNS = (
    *COPIED,
    *TOKENS,
    *("created_at", "first_chunk_ms", "duration_ms", "cost_nano"),
)
SUMS = (
    *("requests", "failures", "prompt_tokens", "completion_tokens"),
    *("cost_nano", "estimated_requests"),
)
# The maximum of a sum, which the database accepts.
MAX_SUM = 10**18
PRUNED = 500
# The longest window is a month.
COUNTERS_KEPT = timedelta(days=62)
# A price is per million tokens; costs are kept in billionths of its currency.
NANO_PER_TOKEN = Decimal(1000)

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class CompletedRequest:
    """A request that has ended; unlike its context, without the body."""

    at: datetime
    tenant: str
    principal: str
    key_id: int | None
    model: str
    upstream_model: str
    request_id: str
    status: int
    error_status: int
    streamed: bool
    usage: Usage | None
    first_chunk_s: float | None
    duration_s: float
    estimated: bool = False
    ending: str = ""
    base_url: str = ""
    session: str = ""
    agent: str = ""
    parent_agent: str = ""
    # In billionths: what a budget has counted for a model without a price.
    assumed_cost: int | None = None

    @classmethod
    def of(cls, context: ChatContext) -> CompletedRequest:
        usage, is_estimated = context.counted()
        caller, reserved = context.caller, context.reservation
        assumed = None
        if reserved and usage:
            assumed = reserved.assumed_cost(context.endpoint.name, usage)
        return cls(
            at=datetime.now(UTC),
            tenant=caller.tenant,
            principal=caller.principal,
            key_id=caller.key_id,
            model=context.endpoint.name,
            upstream_model=context.target.model[:255] if context.target else "",
            request_id=context.request_id,
            status=context.status,
            error_status=context.error_status,
            streamed=context.request.stream,
            usage=usage,
            first_chunk_s=context.first_chunk_s,
            duration_s=context.duration_s,
            estimated=is_estimated or assumed is not None,
            assumed_cost=assumed,
            ending=context.ending,
            base_url=context.target.base_url if context.target else "",
            session=context.session,
            agent=context.agent,
            parent_agent=context.parent_agent,
        )

    @property
    def outcome(self) -> int:
        """The status that counts: the error's if a stream failed after it began."""
        return self.error_status or self.status

    @property
    def day_key(self) -> Key:
        return self.tenant, self.at.date(), self.principal, self.model

    def cost_nano(self, prices: Mapping[str, ModelPrice]) -> int | None:
        """Return the cost in billionths, or None when it or the tokens are unknown."""
        if self.usage is None:
            return None
        price = prices.get(self.model) or listed(self.base_url, self.upstream_model)
        if price is None:
            return self.assumed_cost
        return min(round(price.cost(self.usage) * NANO_PER_TOKEN), MAX_SUM)

    def record(self, cost: int | None) -> tuple[Any, ...]:
        """Return the values of COLUMNS."""
        first_chunk_s = self.first_chunk_s
        return (
            *(getattr(self, name) for name in COPIED),
            *(getattr(self.usage, name, None) for name in TOKENS),
            connection.ops.adapt_datetimefield_value(self.at),
            None if first_chunk_s is None else round(first_chunk_s * 1000),
            round(self.duration_s * 1000),
            cost,
        )

    def sums(self, cost: int | None) -> tuple[int, ...]:
        """Return the values of SUMS."""
        usage = self.usage or Usage(0, 0)
        return (
            1,
            int(self.outcome >= 400),
            usage.prompt_tokens,
            usage.completion_tokens or 0,
            cost or 0,
            int(self.estimated),
        )

    def durations(self) -> Iterable[tuple[str, float]]:
        """Yield the histograms that count the request, and its seconds."""
        if self.first_chunk_s is not None:
            yield FIRST_CHUNK, self.first_chunk_s
        yield DURATION, self.duration_s


def write(requests: Sequence[CompletedRequest]) -> None:
    """Write completed requests, all or none. Raises DatabaseError."""
    with transaction.atomic():
        prices = {price.model: price for price in ModelPrice.objects.all()}
        priced = [(request, request.cost_nano(prices)) for request in requests]
        _insert([request.record(cost) for request, cost in priced])
        DAYS.add((request.day_key, request.sums(cost)) for request, cost in priced)
        TOTALS.add(
            ((request.model, request.outcome), request.sums(cost))
            for request, cost in priced
        )
        HISTOGRAMS.add(
            ((metric, request.model, bisect_left(BUCKETS, seconds)), (1, seconds))
            for request in requests
            for metric, seconds in request.durations()
        )


def prune() -> int:
    """Delete the records that are older than CHAT_USAGE_RETENTION_DAYS; return how many.

    Days, totals and histograms stay. Logged requests are deleted after the days that the
    configuration says, counters of budgets when their windows have ended for long.
    """
    log_days = configuration.current().request_log.retention_days
    ended = timezone.now() - COUNTERS_KEPT
    BudgetCounter.objects.filter(window__lt=ended.timestamp()).delete()
    _delete(_older(LoggedRequest.objects.all(), log_days))
    return _delete(
        _older(UsageRecord.objects.all(), settings.CHAT_USAGE_RETENTION_DAYS)
    )


def _older(rows: QuerySet[Any], days: int) -> QuerySet[Any]:
    end = timezone.now() - timedelta(days=days)
    return rows.filter(created_at__lt=end).order_by("created_at")


def _delete(rows: QuerySet[Any]) -> int:
    """Delete rows, a batch at a time, so that no writer waits long; return how many."""
    deleted = 0
    while pks := list(rows.values_list("pk", flat=True)[:PRUNED]):
        deleted += rows.model.objects.filter(pk__in=pks).delete()[0]
    return deleted


def _insert(rows: Sequence[tuple[Any, ...]]) -> None:
    """Add records. bulk_create() took a tenth of the whole gateway's time."""
    columns, marks = ", ".join(COLUMNS), ", ".join(["%s"] * len(COLUMNS))
    statement = f"INSERT INTO gateway_chat_usagerecord ({columns}) VALUES ({marks})"  # noqa: S608 - names of ours
    with connection.cursor() as cursor:
        cursor.executemany(statement, rows)


@dataclass(frozen=True, slots=True)
class SumTable:
    """A table with a row of sums for each combination of its keys."""

    name: str
    keys: tuple[str, ...]
    sums: tuple[str, ...]

    def add(self, rows: Iterable[tuple[Key, Sequence[float]]]) -> None:
        """Add to the rows with these keys, and create missing ones: one statement for all.

        In the order of the keys, so that two writers cannot block each other.
        """
        added: dict[Key, list[float]] = {}
        for key, values in rows:
            sums = added.setdefault(key, [0] * len(values))
            for index, value in enumerate(values):
                sums[index] = min(sums[index] + value, MAX_SUM)
        with connection.cursor() as cursor:
            cursor.executemany(
                self._statement(),
                [(*map(_plain, key), *added[key]) for key in sorted(added)],
            )

    def _statement(self) -> str:
        columns = (*self.keys, *self.sums)
        marks = ", ".join(["%s"] * len(columns))
        least = "MIN" if connection.vendor == "sqlite" else "LEAST"
        updates = ", ".join(
            f"{name} = {least}({self.name}.{name}, {MAX_SUM} - excluded.{name})"
            f" + excluded.{name}"
            for name in self.sums
        )
        return (
            f"INSERT INTO {self.name} ({', '.join(columns)}) VALUES ({marks}) "  # noqa: S608 - names of ours
            f"ON CONFLICT ({', '.join(self.keys)}) DO UPDATE SET {updates}"
        )


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


DAYS = SumTable("gateway_chat_usageday", ("tenant", "day", "principal", "model"), SUMS)
TOTALS = SumTable("gateway_chat_usagetotal", ("model", "status"), SUMS)
HISTOGRAMS = SumTable(
    "gateway_chat_usagebucket", ("metric", "model", "bucket"), ("count", "total")
)
