"""/metrics for Prometheus: read from the database at each scrape, and counts of this process."""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Lock

from django.db import Error as DatabaseError
from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from config.operations import access
from gateway.chat.metrics import ChatCollector, budget_store_up
from recording.accounts.security_log import events as security_events
from recording.mcp.metrics import challenges, tool_calls
from recording.oauth.client_documents import failures as document_failures
from webhooks_core.models import Attempt, EngineState
from webhooks_core.upkeep import stats

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# A row gets its id before its transaction commits. After this time it is visible, or never.
COMMITTED_AFTER_S = 5.0

# Counts of this process that products keep.
PRODUCT_COUNTERS = (
    budget_store_up,
    tool_calls,
    challenges,
    security_events,
    document_failures,
)

registry = CollectorRegistry()
requests = Counter(
    "signpost_http_requests",
    "Requests answered by this process.",
    ["method", "route", "status"],
    registry=registry,
)
durations = Histogram(
    "signpost_http_request_duration_seconds",
    "Time to an answer of this process.",
    ["method", "route"],
    registry=registry,
)


class MetricsMiddleware:
    """Counts every request by method, route (a pattern of the URL map) and status."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        response = self.get_response(request)
        # A client must not be able to create labels.
        method = request.method if request.method in METHODS else "other"
        route = f"/{request.resolver_match.route}" if request.resolver_match else "none"
        requests.labels(method, route, response.status_code).inc()
        durations.labels(method, route).observe(time.perf_counter() - started)
        return response


class AttemptTally:
    """Counts of the attempts of all processes since the first update.

    Ids of attempts rise. Each update counts the rows up to the newest id of the update before,
    in one query whose cost depends on the new rows and not on the history.
    """

    def __init__(self) -> None:
        self.attempts: Tally[tuple[str, str]] = Tally()
        self.ended: Tally[tuple[str, str]] = Tally()
        self.milliseconds: Tally[str] = Tally()
        self.within: dict[str, Tally[int | None]] = {}
        self._counted_until: int | None = None
        self._newest = 0
        self._newest_at = 0.0

    def update(self, now: float) -> None:
        """Count the new attempts; `now` is in seconds on the monotonic clock."""
        counted = self._counted_until
        if counted is not None and now - self._newest_at < COMMITTED_AFTER_S:
            return
        newest = Attempt.objects.aggregate(newest=Max("pk"))["newest"] or 0
        if counted is None:
            self._counted_until = newest
        elif self._newest > counted:
            self._add(counted, self._newest)
            self._counted_until = self._newest
        self._newest, self._newest_at = max(newest, self._newest), now

    def _add(self, after: int, until: int) -> None:
        for row in stats.attempts_between(after, until):
            self.attempts[row.profile, row.outcome] += row.attempts
            self.ended[row.profile, "delivered"] += row.delivered
            self.ended[row.profile, "failed"] += row.failed
            self.milliseconds[row.profile] += row.milliseconds
            self.within.setdefault(row.profile, Tally()).update(row.within)


class DatabaseCollector(Collector):
    """Deliveries, endpoints, workers and chat, as the database has them."""

    def __init__(self) -> None:
        self._tally = AttemptTally()
        self._lock = Lock()

    def collect(self) -> Iterable[Metric]:
        up = GaugeMetricFamily(
            "signpost_database_up", "Whether the database answered this scrape."
        )
        try:
            families = list(self._collect())
        except DatabaseError:
            families = []
        up.add_metric([], float(bool(families)))
        return [up, *families]

    def _collect(self) -> Iterator[Metric]:
        now = timezone.now()
        yield from ChatCollector().collect()
        yield from _gauges(stats.engine_stats())
        yield GaugeMetricFamily(
            "signpost_webhook_oldest_due_seconds",
            "How long the most overdue delivery has waited.",
            stats.oldest_due(now).total_seconds(),
        )
        if last_seen_at := stats.last_seen_at(now):
            yield GaugeMetricFamily(
                "signpost_worker_silent_seconds",
                "Seconds since the last heartbeat of a worker.",
                max((now - last_seen_at).total_seconds(), 0.0),
            )
        yield _repairs()
        with self._lock:
            self._tally.update(time.monotonic())
            yield from _counters(self._tally)


def _gauges(figures: stats.EngineStats) -> Iterator[Metric]:
    endpoints = GaugeMetricFamily(
        "signpost_webhook_endpoints", "Endpoints by state.", labels=["state"]
    )
    names = ("failing", "hanging", "disabled", "paused", "inactive", "alerted")
    for name in names:
        endpoints.add_metric([name], getattr(figures, name))
    endpoints.add_metric(["all"], figures.endpoints)
    yield endpoints
    deliveries = GaugeMetricFamily(
        "signpost_webhook_deliveries_pending",
        "Deliveries that have not ended, by what they do.",
        labels=["state"],
    )
    for name in ("waiting", "suspended", "in_flight"):
        deliveries.add_metric([name], getattr(figures, name))
    yield deliveries
    yield GaugeMetricFamily(
        "signpost_webhook_dispatchers",
        "Dispatchers that take work.",
        figures.dispatchers,
    )
    yield GaugeMetricFamily(
        "signpost_webhook_offline_dispatchers",
        "Dispatchers that postpone attempts because their machine has no network.",
        figures.offline_dispatchers,
    )


def _repairs() -> Metric:
    family = CounterMetricFamily(
        "signpost_webhook_repairs",
        "What crashes left behind and was repaired.",
        labels=["kind"],
    )
    state = EngineState.objects.filter(pk=1).first() or EngineState()
    family.add_metric(["expired_lease"], state.expired_leases)
    family.add_metric(["stale_queue"], state.repaired_queues)
    return family


def _counters(tally: AttemptTally) -> Iterator[Metric]:
    attempts = CounterMetricFamily(
        "signpost_webhook_attempts",
        "Attempts by outcome.",
        labels=["profile", "outcome"],
    )
    yield _with_counts(attempts, tally.attempts)
    ended = CounterMetricFamily(
        "signpost_webhook_deliveries",
        "Deliveries that an attempt ended, by how.",
        labels=["profile", "outcome"],
    )
    yield _with_counts(ended, tally.ended)
    latency = HistogramMetricFamily(
        "signpost_webhook_attempt_duration_seconds",
        "Time of an attempt, from its start to the answer.",
        labels=["profile"],
    )
    for profile, within in tally.within.items():
        buckets = [(_bound(bound), within[bound]) for bound in (*stats.BOUNDS_MS, None)]
        latency.add_metric([profile], buckets, tally.milliseconds[profile] / 1000)
    yield latency


def _with_counts(
    family: CounterMetricFamily, counts: Mapping[tuple[str, str], float]
) -> CounterMetricFamily:
    for labels, count in counts.items():
        family.add_metric(labels, count)
    return family


def _bound(milliseconds: int | None) -> str:
    return "+Inf" if milliseconds is None else str(milliseconds / 1000)


registry.register(DatabaseCollector())
for counter in PRODUCT_COUNTERS:
    registry.register(counter)
ProcessCollector(registry=registry)
PlatformCollector(registry=registry)
GCCollector(registry=registry)


@csrf_exempt
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return every metric to those who may see the state, and 401 to others."""
    try:
        is_allowed = access.may_see_state(request)
    except DatabaseError:  # a session that cannot be looked up
        is_allowed = False
    if not is_allowed:
        return HttpResponse(
            "Needs METRICS_TOKEN as a bearer token, or a staff session.\n",
            status=401,
            content_type="text/plain; charset=utf-8",
            headers={"WWW-Authenticate": 'Bearer realm="metrics"'},
        )
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(registry), content_type=content_type)
