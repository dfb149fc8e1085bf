"""Chat's metrics, read from the database: the same from every process, and none is lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import attrgetter

from prometheus_client import Gauge
from prometheus_client.core import (
    CounterMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from gateway.chat.metering.usage import BUCKETS, DURATION, FIRST_CHUNK
from gateway.chat.models import UsageBucket, UsageTotal

BOUNDS = (*(f"{bound:g}" for bound in BUCKETS), "+Inf")
HISTOGRAMS = {
    FIRST_CHUNK: (
        "gateway_chat_first_chunk_seconds",
        "Time to the first chunk of a stream.",
    ),
    DURATION: (
        "gateway_chat_duration_seconds",
        "Time from a request to the end of its response.",
    ),
}


# Not in prometheus_client's own registry: /metrics has one of its own.
budget_store_up = Gauge(
    "gateway_chat_budget_store_up",
    "Whether the rows of budgets' counters were read at the last attempt of this process.",
    registry=None,
)


class ChatCollector(Collector):
    """Two queries for each scrape; a request counts a tenth of a second after its end."""

    def collect(self) -> Iterator[Metric]:
        yield from _counters()
        yield from _histograms()

    def describe(self) -> list[Metric]:
        return []  # registering must not query the database


def _counters() -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "gateway_chat_requests",
        "Requests that an endpoint was found for, by the status that counts.",
        labels=("model", "status"),
    )
    tokens = CounterMetricFamily(
        "gateway_chat_tokens",
        "Tokens as upstreams count them, or as estimated from the text.",
        labels=("model", "kind"),
    )
    cost = CounterMetricFamily(
        "gateway_chat_cost", "Cost in the currency of the prices.", labels=("model",)
    )
    estimated = CounterMetricFamily(
        "gateway_chat_estimated_requests",
        "Requests whose tokens are in part an estimate.",
        labels=("model",),
    )
    totals = UsageTotal.objects.order_by("model", "status")
    for model, group in groupby(totals, key=attrgetter("model")):
        rows = list(group)
        for row in rows:
            requests.add_metric((model, str(row.status)), row.requests)
        tokens.add_metric((model, "prompt"), sum(row.prompt_tokens for row in rows))
        tokens.add_metric(
            (model, "completion"), sum(row.completion_tokens for row in rows)
        )
        cost.add_metric((model,), sum(row.cost_nano for row in rows) / 1e9)
        estimated.add_metric((model,), sum(row.estimated_requests for row in rows))
    yield from (requests, tokens, cost, estimated)


def _histograms() -> Iterator[Metric]:
    histograms: dict[tuple[str, str], dict[int, UsageBucket]] = defaultdict(dict)
    for row in UsageBucket.objects.order_by("metric", "model"):
        histograms[row.metric, row.model][row.bucket] = row
    for metric, (name, text) in HISTOGRAMS.items():
        family = HistogramMetricFamily(name, text, labels=("model",))
        for (row_metric, model), rows in histograms.items():
            if row_metric == metric:
                total = sum(row.total for row in rows.values())
                family.add_metric((model,), _cumulative(rows), total)
        yield family


def _cumulative(rows: Mapping[int, UsageBucket]) -> list[tuple[str, float]]:
    count, buckets = 0, []
    for number, bound in enumerate(BOUNDS):
        count += rows[number].count if number in rows else 0
        buckets.append((bound, float(count)))
    return buckets
