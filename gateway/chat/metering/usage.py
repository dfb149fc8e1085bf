"""What is written of requests that have ended: records, sums, histograms, in one transaction."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from gateway.chat.context import ChatContext
from gateway.chat.metering.tokens import Usage
from gateway.chat.models import ModelPrice, UsageRecord

# Upper bounds in seconds; what is above the last falls into one more bucket.
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
FIRST_CHUNK, DURATION = "first_chunk", "duration"
RECORD = (
    *("created_at", "tenant", "principal", "key_id", "model", "upstream_model"),
    *("request_id", "status", "error_status", "streamed", "prompt_tokens"),
    *("completion_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens"),
    *("estimated", "first_chunk_ms", "duration_ms", "cost_nano"),
)
SUMS = (
    *("requests", "failures", "prompt_tokens", "completion_tokens"),
    *("cost_nano", "estimated_requests"),
)
# Sums stop growing here, well before the database refuses them.
MAX_SUM = 10**18
PRUNED = 500
# A price is per million tokens; costs are kept in billionths of its currency.
NANO_PER_TOKEN = Decimal(1000)


@dataclass(frozen=True, slots=True)
class CompletedRequest:
    """An context that has ended, without what it held on to (its body, above all)."""

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

    @classmethod
    def of(cls, context: ChatContext) -> CompletedRequest:
        usage, is_estimated = context.counted()
        caller = context.caller
        return cls(
            at=datetime.now(UTC),
            tenant=caller.tenant,
            principal=caller.principal,
            key_id=caller.key_id,
            model=context.endpoint.name,
            upstream_model=context.target.model if context.target else "",
            request_id=context.request_id,
            status=context.status,
            error_status=context.error_status,
            streamed=context.request.stream,
            usage=usage,
            first_chunk_s=context.first_chunk_s,
            duration_s=context.duration_s,
            estimated=is_estimated,
        )

    @property
    def outcome(self) -> int:
        """The status that counts: the error's, where a stream failed after it began."""
        return self.error_status or self.status

    def cost_nano(self, prices: dict[str, ModelPrice]) -> int | None:
        """Return the cost in billionths, or None when price or tokens are unknown."""
        price = prices.get(self.model)
        if price is None or self.usage is None:
            return None
        return min(round(price.cost(self.usage) * NANO_PER_TOKEN), MAX_SUM)


def write(ended: Sequence[CompletedRequest]) -> None:
    """Write what ended, all or nothing. Raises DatabaseError."""
    with transaction.atomic():
        prices = {it.model: it for it in ModelPrice.objects.all()}
        costs = [it.cost_nano(prices) for it in ended]
        _insert(map(_record, ended, costs))
        _add(
            "gateway_chat_usageday",
            ("tenant", "day", "principal", "model"),
            SUMS,
            _days(ended, costs),
        )
        _add(
            "gateway_chat_usagetotal", ("model", "status"), SUMS, _totals(ended, costs)
        )
        _add(
            "gateway_chat_usagebucket",
            ("metric", "model", "bucket"),
            ("count", "total"),
            _buckets(ended),
        )


def prune(days: int) -> int:
    """Delete the records that are older than so many days; return how many.

    A batch at a time, so that no writer waits long. Days, totals and histograms stay.
    """
    end, deleted = timezone.now() - timedelta(days=days), 0
    while True:
        old = UsageRecord.objects.filter(created_at__lt=end).order_by("created_at")
        count, _ = UsageRecord.objects.filter(
            pk__in=list(old.values_list("pk", flat=True)[:PRUNED])
        ).delete()
        deleted += count
        if count < PRUNED:
            return deleted


def _record(it: CompletedRequest, cost: int | None) -> tuple[Any, ...]:
    """Return the values of RECORD's columns."""
    return (
        connection.ops.adapt_datetimefield_value(it.at),
        it.tenant,
        it.principal,
        it.key_id,
        it.model,
        it.upstream_model[:255],
        it.request_id,
        it.status,
        it.error_status,
        it.streamed,
        *_counts(it.usage),
        it.estimated,
        None if it.first_chunk_s is None else round(it.first_chunk_s * 1000),
        round(it.duration_s * 1000),
        cost,
    )


def _counts(usage: Usage | None) -> tuple[int | None, ...]:
    if usage is None:
        return (None,) * 5
    return (
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cached_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
    )


def _insert(rows: Iterable[tuple[Any, ...]]) -> None:
    """Add records. Through bulk_create() they took a tenth of the whole gateway's time."""
    columns, marks = ", ".join(RECORD), ", ".join(["%s"] * len(RECORD))
    statement = f"INSERT INTO gateway_chat_usagerecord ({columns}) VALUES ({marks})"  # noqa: S608 - names of ours
    with connection.cursor() as cursor:
        cursor.executemany(statement, list(rows))


Sums = dict[tuple[Any, ...], list[float]]


def _sums(it: CompletedRequest, cost: int | None) -> tuple[int, ...]:
    failed = int(it.outcome >= 400)
    prompt, completion, *_ = _counts(it.usage)
    return (1, failed, prompt or 0, completion or 0, cost or 0, int(it.estimated))


def _summed(rows: Iterable[tuple[tuple[Any, ...], Sequence[float]]]) -> Sums:
    found: Sums = {}
    for key, values in rows:
        known = found.setdefault(key, [0] * len(values))
        for index, value in enumerate(values):
            known[index] = min(known[index] + value, MAX_SUM)
    return found


def _days(ended: Sequence[CompletedRequest], costs: Sequence[int | None]) -> Sums:
    return _summed(
        ((it.tenant, it.at.date(), it.principal, it.model), _sums(it, cost))
        for it, cost in zip(ended, costs, strict=True)
    )


def _totals(ended: Sequence[CompletedRequest], costs: Sequence[int | None]) -> Sums:
    return _summed(
        ((it.model, it.outcome), _sums(it, cost))
        for it, cost in zip(ended, costs, strict=True)
    )


def _buckets(ended: Sequence[CompletedRequest]) -> Sums:
    return _summed(
        ((metric, it.model, bisect_left(BUCKETS, seconds)), (1, seconds))
        for it in ended
        for metric, seconds in (
            (FIRST_CHUNK, it.first_chunk_s),
            (DURATION, it.duration_s),
        )
        if seconds is not None
    )


def _add(table: str, keys: Sequence[str], sums: Sequence[str], rows: Sums) -> None:
    """Add to the rows with these keys, and make the missing ones: one statement for all.

    In the order of the keys, so that two writers cannot wait for one another.
    """
    columns = ", ".join((*keys, *sums))
    marks = ", ".join(["%s"] * (len(keys) + len(sums)))
    least = "MIN" if connection.vendor == "sqlite" else "LEAST"
    added = ", ".join(
        f"{name} = {least}({table}.{name}, {MAX_SUM} - excluded.{name}) + excluded.{name}"
        for name in sums
    )
    statement = (
        f"INSERT INTO {table} ({columns}) VALUES ({marks}) "  # noqa: S608 - names of ours
        f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {added}"
    )
    with connection.cursor() as cursor:
        cursor.executemany(
            statement, [(*map(_plain, key), *rows[key]) for key in sorted(rows)]
        )


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value
