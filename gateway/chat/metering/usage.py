"""Records, sums and histograms of completed requests, written in one transaction."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from operator import add, attrgetter
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from gateway import configuration
from gateway.chat.context import ChatContext
from gateway.chat.metering.definitions import listed
from gateway.chat.models import BudgetCounter, ModelPrice, RequestRecord
from gateway.policy import storable

# Upper bounds in seconds; one more bucket counts what is above the last.
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
FIRST_CHUNK, DURATION = "first_chunk", "duration"
TOKENS = (
    *("prompt_tokens", "completion_tokens", "cached_tokens"),
    *("cache_write_tokens", "reasoning_tokens"),
)
TEXTS = ("excerpt", "truncated", "tools", "prompt", "answer")
COLUMNS = (
    *("created_at", "tenant", "principal", "key_id", "operation", "requested"),
    *("model", "upstream_model", "base_url", "request_id", "session", "streamed"),
    *("status", "error_status", "error", "ending", *TOKENS, "estimated", "cost_nano"),
    *("first_chunk_ms", "duration_ms", *TEXTS),
)
UNKNOWN, NO_TEXTS = (None,) * len(TOKENS), ("", False, None, None, None)
tokens_of = attrgetter(*TOKENS)
SUMS = (
    *("requests", "failures", "prompt_tokens", "completion_tokens"),
    *("cost_nano", "estimated_requests"),
)
# The maximum of one cost, so that the database accepts the sums of thousands.
MAX_COST = 10**15
PRUNED = 500
# The longest window is a month.
COUNTERS_KEPT = timedelta(days=62)
# A price is per million tokens; costs are kept in billionths of its currency.
NANO_PER_TOKEN = Decimal(1000)
MAX_ERROR = 2000

Key = tuple[Any, ...]


def write(requests: Sequence[ChatContext]) -> None:
    """Write requests that have ended, all or none. Raises DatabaseError."""
    with transaction.atomic():
        prices = {price.model: price for price in ModelPrice.objects.all()}
        priced = [(request, cost_nano(request, prices)) for request in requests]
        # Once: it takes as long as the rest of a row.
        stored_time = connection.ops.adapt_datetimefield_value
        _insert([(stored_time(it.ended_at), *_record(it, cost)) for it, cost in priced])
        called = [(it, _sums(it, cost)) for it, cost in priced if it.endpoint.name]
        DAYS.add((_day_key(it), sums) for it, sums in called)
        TOTALS.add(((it.endpoint.name, it.outcome), sums) for it, sums in called)
        HISTOGRAMS.add(
            ((metric, it.endpoint.name, bisect_left(BUCKETS, seconds)), (1, seconds))
            for it, _ in called
            for metric, seconds in _durations(it)
        )


def cost_nano(it: ChatContext, prices: Mapping[str, ModelPrice]) -> int | None:
    """Return the cost of a request in billionths, or None when it or the tokens are unknown."""
    if it.usage is None:
        return None
    target = it.target
    price = prices.get(it.endpoint.name) or listed(target.base_url, target.model[:255])
    if price is None:
        return it.assumed_cost
    return min(round(price.cost(it.usage) * NANO_PER_TOKEN), MAX_COST)


def _record(it: ChatContext, cost: int | None) -> tuple[Any, ...]:
    """Return the values of COLUMNS after the first."""
    caller, target, first_chunk_s = it.caller, it.target, it.first_chunk_s
    return (
        *(caller.tenant, caller.principal, caller.key_id),
        *(it.operation.action, storable(it.request.model)[:128]),
        *(it.endpoint.name, target.model[:255], target.base_url),
        *(it.request_id, it.session, it.request.stream),
        *(it.status, it.error_status, storable(it.failure[:MAX_ERROR]), it.ending),
        *(tokens_of(it.usage) if it.usage else UNKNOWN),
        *(it.is_estimated, cost),
        None if first_chunk_s is None else round(first_chunk_s * 1000),
        round(it.duration_s * 1000),
        *(it.log.columns() if it.log else NO_TEXTS),
    )


def _day_key(it: ChatContext) -> Key:
    return it.caller.tenant, it.ended_at.date(), it.caller.principal, it.endpoint.name


def _sums(it: ChatContext, cost: int | None) -> tuple[int, ...]:
    """Return the values of SUMS."""
    usage = it.usage
    return (
        1,
        int(it.outcome >= 400),
        usage.prompt_tokens if usage else 0,
        (usage.completion_tokens or 0) if usage else 0,
        cost or 0,
        int(it.is_estimated),
    )


def _durations(it: ChatContext) -> Iterator[tuple[str, float]]:
    """Yield the histograms that count a request, and its seconds."""
    if it.first_chunk_s is not None:
        yield FIRST_CHUNK, it.first_chunk_s
    yield DURATION, it.duration_s


def prune() -> int:
    """Delete the records that are older than CHAT_USAGE_RETENTION_DAYS; return how many.

    Days, totals and histograms stay. Prompts and answers go after the days that the configuration
    says, counters of budgets when their windows have ended for long.
    """
    ended = timezone.now() - COUNTERS_KEPT
    BudgetCounter.objects.filter(window__lt=ended.timestamp()).delete()
    days = configuration.current().request_log.retention_days
    with_texts = _older(days).filter(prompt__isnull=False)
    for pks in _batches(with_texts):
        RequestRecord.objects.filter(pk__in=pks).update(
            excerpt="", tools=None, prompt=None, answer=None
        )
    old = _older(settings.CHAT_USAGE_RETENTION_DAYS)
    return sum(
        RequestRecord.objects.filter(pk__in=pks).delete()[0] for pks in _batches(old)
    )


def _older(days: int) -> QuerySet[RequestRecord]:
    end = timezone.now() - timedelta(days=days)
    return RequestRecord.objects.filter(created_at__lt=end).order_by("created_at")


def _batches(rows: QuerySet[RequestRecord]) -> Iterator[list[int]]:
    """Yield the keys of rows, a batch at a time, until none is left: no writer waits long."""
    while pks := list(rows.values_list("pk", flat=True)[:PRUNED]):
        yield pks


def _insert(records: Sequence[tuple[Any, ...]]) -> None:
    """Add records. bulk_create() took a tenth of the whole gateway's time."""
    columns, marks = ", ".join(COLUMNS), ", ".join(["%s"] * len(COLUMNS))
    statement = f"INSERT INTO gateway_chat_requestrecord ({columns}) VALUES ({marks})"  # noqa: S608 - names of ours
    with connection.cursor() as cursor:
        cursor.executemany(statement, records)


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
        added: dict[Key, Iterable[float]] = {}
        for key, values in rows:
            known = added.get(key)
            added[key] = [*map(add, known, values)] if known else values
        parameters = [(*map(_plain, key), *added[key]) for key in sorted(added)]
        with connection.cursor() as cursor:
            cursor.executemany(self._statement(), parameters)

    def _statement(self) -> str:
        columns = (*self.keys, *self.sums)
        marks = ", ".join(["%s"] * len(columns))
        updates = ", ".join(
            f"{name} = {self.name}.{name} + excluded.{name}" for name in self.sums
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
