"""Records, sums and histograms of completed requests, written in one transaction."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from operator import add, attrgetter
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from gateway import configuration
from gateway.chat.budget_models import BudgetCounter
from gateway.chat.context import ChatContext
from gateway.chat.metering.prices import listed
from gateway.chat.models import ModelPrice, RequestRecord
from gateway.chat.request_log.entry import LogEntry
from gateway.chat.tokens import Usage
from gateway.policy import storable

# Upper bounds in seconds; one more bucket counts what is above the last.
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
FIRST_CHUNK, DURATION = "first_chunk", "duration"
TOKENS = (
    *("prompt_tokens", "completion_tokens", "cached_tokens"),
    *("cache_write_tokens", "reasoning_tokens"),
)
TEXTS = ("excerpt", "truncated", "tools", "prompt", "answer")
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


class CompletedRequest(NamedTuple):
    """A request that has ended; unlike its context, without the body.

    `model` is the one that answered, empty if the request was refused before a call. `texts` are
    the prompt and the answer if the log keeps them.
    """

    at: datetime
    # As the columns of a record.
    tenant: str
    principal: str
    key_id: int | None
    operation: str
    requested: str
    request_id: str
    status: int
    streamed: bool
    model: str = ""
    upstream_model: str = ""
    base_url: str = ""
    session: str = ""
    error_status: int = 0
    error: str = ""
    ending: str = ""
    estimated: bool = False
    # What columns are computed from.
    usage: Usage | None = None
    first_chunk_s: float | None = None
    duration_s: float = 0.0
    # In billionths: what a budget has counted for a model without a price.
    assumed_cost: int | None = None
    texts: LogEntry | None = None

    @classmethod
    def of(cls, context: ChatContext) -> CompletedRequest:
        usage, is_estimated = context.counted()
        caller, target, assumed = context.caller, context.target, context.assumed_cost
        return cls(
            at=datetime.now(UTC),
            tenant=caller.tenant,
            principal=caller.principal,
            key_id=caller.key_id,
            operation=context.operation.action,
            requested=storable(context.request.model)[:128],
            request_id=context.request_id,
            status=context.status,
            streamed=context.request.stream,
            model=context.endpoint.name,
            upstream_model=target.model[:255],
            base_url=target.base_url,
            session=context.session,
            error_status=context.error_status,
            error=storable(context.failure[:MAX_ERROR]) if context.failure else "",
            ending=context.ending,
            usage=usage,
            estimated=is_estimated or assumed is not None,
            first_chunk_s=context.first_chunk_s,
            duration_s=context.duration_s,
            assumed_cost=assumed,
            texts=context.log,
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
        return min(round(price.cost(self.usage) * NANO_PER_TOKEN), MAX_COST)

    def record(self, cost: int | None) -> tuple[Any, ...]:
        """Return the values of COLUMNS, but for the time."""
        first_chunk_s = self.first_chunk_s
        return (
            *self[1:COPIED],
            *(tokens_of(self.usage) if self.usage else UNKNOWN),
            None if first_chunk_s is None else round(first_chunk_s * 1000),
            round(self.duration_s * 1000),
            cost,
            *(self.texts.columns() if self.texts else NO_TEXTS),
        )

    def sums(self, cost: int | None) -> tuple[int, ...]:
        """Return the values of SUMS."""
        usage = self.usage
        return (
            1,
            int(self.outcome >= 400),
            usage.prompt_tokens if usage else 0,
            (usage.completion_tokens or 0) if usage else 0,
            cost or 0,
            int(self.estimated),
        )

    def durations(self) -> Iterable[tuple[str, float]]:
        """Yield the histograms that count the request, and its seconds."""
        if self.first_chunk_s is not None:
            yield FIRST_CHUNK, self.first_chunk_s
        yield DURATION, self.duration_s


COPIED = CompletedRequest._fields.index("usage")
COLUMNS = (
    "created_at",
    *CompletedRequest._fields[1:COPIED],
    *TOKENS,
    *("first_chunk_ms", "duration_ms", "cost_nano"),
    *TEXTS,
)


def write(requests: Sequence[CompletedRequest]) -> None:
    """Write completed requests, all or none. Raises DatabaseError."""
    with transaction.atomic():
        prices = {price.model: price for price in ModelPrice.objects.all()}
        priced = [(request, request.cost_nano(prices)) for request in requests]
        _insert(priced)
        called = [(it, it.sums(cost)) for it, cost in priced if it.model]
        DAYS.add((request.day_key, sums) for request, sums in called)
        TOTALS.add(((request.model, request.outcome), sums) for request, sums in called)
        HISTOGRAMS.add(
            ((metric, request.model, bisect_left(BUCKETS, seconds)), (1, seconds))
            for request, _ in called
            for metric, seconds in request.durations()
        )


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


def _insert(priced: Iterable[tuple[CompletedRequest, int | None]]) -> None:
    """Add records. bulk_create() took a tenth of the whole gateway's time."""
    columns, marks = ", ".join(COLUMNS), ", ".join(["%s"] * len(COLUMNS))
    statement = f"INSERT INTO gateway_chat_requestrecord ({columns}) VALUES ({marks})"  # noqa: S608 - names of ours
    as_time = connection.ops.adapt_datetimefield_value
    rows = [(as_time(it.at), *it.record(cost)) for it, cost in priced]
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
