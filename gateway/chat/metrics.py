"""Chat's metrics, read from the database: the same from every process, and never lost by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

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
        "signpost_chat_first_chunk_seconds",
        "Time to the first chunk of a stream.",
    ),
    DURATION: (
        "signpost_chat_duration_seconds",
        "Time from a request to the end of its answer.",
    ),
}


class ChatCollector(Collector):
    """Two queries for each scrape; what happened is here a tenth of a second later."""

    def collect(self) -> Iterator[Metric]:
        yield from _counters()
        yield from _histograms()

    def describe(self) -> list[Metric]:
        return []  # registering must not ask the database


def _counters() -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "signpost_chat_requests",
        "Requests that an endpoint was found for, by the status that counts.",
        labels=("model", "status"),
    )
    tokens = CounterMetricFamily(
        "signpost_chat_tokens",
        "Tokens as upstreams count them, or as estimated from the text.",
        labels=("model", "kind"),
    )
    cost = CounterMetricFamily(
        "signpost_chat_cost", "Cost in the currency of the prices.", labels=("model",)
    )
    estimated = CounterMetricFamily(
        "signpost_chat_estimated_requests",
        "Requests whose tokens are in part an estimate.",
        labels=("model",),
    )
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for total in UsageTotal.objects.order_by("model", "status"):
        requests.add_metric((total.model, str(total.status)), total.requests)
        added = (
            *(total.prompt_tokens, total.completion_tokens, total.cost_nano),
            total.estimated_requests,
        )
        sums[total.model] = [
            a + b for a, b in zip(sums[total.model], added, strict=True)
        ]
    for model, (prompt, completion, nano, estimates) in sums.items():
        tokens.add_metric((model, "prompt"), prompt)
        tokens.add_metric((model, "completion"), completion)
        cost.add_metric((model,), nano / 1e9)
        estimated.add_metric((model,), estimates)
    yield from (requests, tokens, cost, estimated)


def _histograms() -> Iterator[Metric]:
    found: dict[tuple[str, str], dict[int, UsageBucket]] = defaultdict(dict)
    for row in UsageBucket.objects.order_by("metric", "model"):
        found[row.metric, row.model][row.bucket] = row
    for metric, (name, text) in HISTOGRAMS.items():
        family = HistogramMetricFamily(name, text, labels=("model",))
        for (of, model), rows in found.items():
            if of == metric:
                family.add_metric((model,), _cumulative(rows), _total(rows))
        yield family


def _cumulative(rows: dict[int, UsageBucket]) -> list[tuple[str, float]]:
    count, buckets = 0, []
    for number, bound in enumerate(BOUNDS):
        count += rows[number].count if number in rows else 0
        buckets.append((bound, float(count)))
    return buckets


def _total(rows: dict[int, UsageBucket]) -> float:
    return sum(row.total for row in rows.values())
