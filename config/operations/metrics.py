"""/metrics for Prometheus: read from the database at each scrape, and requests of this process."""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Iterator
from threading import Lock

from django.db.models import Count, Max
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, Counter, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from config.operations import access
from gateway.chat.metrics import ChatCollector, budget_store_up
from webhooks_core.models import Attempt, Delivery, Endpoint
from webhooks_core.upkeep import stats

# A row gets its id before its transaction commits. After this time it is visible, or never.
COMMITTED_AFTER_S = 5.0
MAX_COUNTED = 100_000

registry = CollectorRegistry()
requests = Counter(
    "signpost_http_requests",
    "Requests answered by this process.",
    ["method", "route", "status"],
    registry=registry,
)


class WebhookCollector(Collector):
    """What waits, who works, and the attempts of all processes since the first scrape.

    Ids of attempts rise. Each scrape counts the rows up to the newest id of the scrape before, in
    one query whose cost depends on the new rows and not on the history.
    """

    def __init__(self) -> None:
        self._attempts: Tally[tuple[str, str]] = Tally()
        self._counted_until: int | None = None
        self._newest, self._newest_at = 0, 0.0
        self._lock = Lock()

    def describe(self) -> list[Metric]:
        return []  # registering must not query the database

    def collect(self) -> Iterator[Metric]:
        now = timezone.now()
        pending = Delivery.objects.pending()[:MAX_COUNTED].count()
        live = Endpoint.objects.filter(deleted_at=None)
        yield GaugeMetricFamily(
            "signpost_webhook_deliveries_pending",
            f"Deliveries that have not ended, counted up to {MAX_COUNTED}.",
            pending,
        )
        yield GaugeMetricFamily(
            "signpost_webhook_oldest_due_seconds",
            "How long the most overdue delivery has waited.",
            stats.oldest_due(now).total_seconds(),
        )
        yield GaugeMetricFamily(
            "signpost_webhook_endpoints_disabled",
            "Endpoints that were disabled after failing too often.",
            live.filter(status=Endpoint.Status.DISABLED).count(),
        )
        if last_seen_at := stats.last_seen_at(now):
            yield GaugeMetricFamily(
                "signpost_worker_silent_seconds",
                "Seconds since the last heartbeat of a worker.",
                max((now - last_seen_at).total_seconds(), 0.0),
            )
        attempts = CounterMetricFamily(
            "signpost_webhook_attempts",
            "Attempts by outcome.",
            labels=["profile", "outcome"],
        )
        with self._lock:
            self._count(time.monotonic())
            for labels, count in self._attempts.items():
                attempts.add_metric(labels, count)
        yield attempts

    def _count(self, now: float) -> None:
        """Count new attempts; `now` is in seconds on the monotonic clock."""
        counted = self._counted_until
        if counted is not None and now - self._newest_at < COMMITTED_AFTER_S:
            return
        newest = Attempt.objects.aggregate(newest=Max("pk"))["newest"] or 0
        if counted is None:
            self._counted_until = newest
        elif self._newest > counted:
            rows = Attempt.objects.filter(pk__gt=counted, pk__lte=self._newest)
            labels = rows.values_list("delivery__endpoint__profile", "outcome")
            for profile, outcome, count in labels.annotate(Count("pk")).order_by():
                self._attempts[profile, outcome] += count
            self._counted_until = self._newest
        self._newest, self._newest_at = max(newest, self._newest), now


registry.register(WebhookCollector())
registry.register(ChatCollector())
registry.register(budget_store_up)
ProcessCollector(registry=registry)


@csrf_exempt
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return every metric to those who may see the state, and 401 to others."""
    if not access.may_see_state(request):
        return HttpResponse(
            "Needs METRICS_TOKEN as a bearer token, or a staff session.\n",
            status=401,
            content_type="text/plain; charset=utf-8",
            headers={"WWW-Authenticate": 'Bearer realm="metrics"'},
        )
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
