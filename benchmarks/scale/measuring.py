"""Jobs that measure the engine and its pages with the rows that there are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from http import HTTPStatus

from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.models import Model
from django.test import Client
from django.utils import timezone

from benchmarks.deliveries.filling import CONTEXT, EVENT_TYPE, OWNER, PROFILE
from benchmarks.deliveries.publishing import claim_once
from benchmarks.scale.filling import DAYS
from config import statements
from webhooks_core.models import Attempt, Delivery, Endpoint, EndpointQueue, Event
from webhooks_core.publishing import publish
from webhooks_core.upkeep import stats
from webhooks_core.upkeep.retention import remove_old
from webhooks_core.upkeep.sweep import sweep

TIMES = 5
STATEMENT_S = 60.0
PAGE = 100
RETENTION_S = 60.0
FILTERS = (
    *("status__exact=0", "status__exact=1", "status__exact=2"),
    *("status__exact=suspended", "error=http", "error=tls", f"type={EVENT_TYPE}"),
    *("trigger__exact=replay", "q=dlv_unknown"),
)
ADMIN = "/admin/webhooks_core"
TABLES: Mapping[str, type[Model]] = {
    "delivery": Delivery,
    "event": Event,
    "endpoint": Endpoint,  # the first one is the paused one
}
Figures = dict[str, float]


def measure_pages() -> Figures:
    """Return the milliseconds of each page and probe of operators, as a web process serves it."""
    connection.close()
    statements.limit(STATEMENT_S)
    client = _operator()
    return {path: _best_ms(partial(_get, client, path)) for path in _paths()}


def _operator() -> Client:
    users = get_user_model().objects
    user = users.filter(username=OWNER).first() or users.create_superuser(OWNER)
    client = Client(SERVER_NAME="localhost")
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return client


def _get(client: Client, path: str) -> None:
    response = client.get(path)
    # No worker runs: a probe may say so.
    if response.status_code not in {HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE}:
        raise RuntimeError(f"{path} answered {response.status_code}")


def _paths() -> Iterator[str]:
    yield from ("/", "/healthz", "/readyz?all", "/metrics", "/admin/")
    yield f"{ADMIN}/dispatcherlease/dashboard/"
    yield f"{ADMIN}/dispatcherlease/"
    for table, model in TABLES.items():
        yield f"{ADMIN}/{table}/"
        if first := model._default_manager.order_by("pk").first():  # noqa: SLF001 - documented
            yield f"{ADMIN}/{table}/{first.pk}/change/"
    yield from (f"{ADMIN}/delivery/?{query}" for query in FILTERS)


def measure_engine() -> Figures:
    """Return the milliseconds of what publishers, dispatchers and the sweep do."""
    paused = Endpoint.objects.earliest("pk")
    last = Delivery.objects.filter(endpoint=paused).count() // PAGE + 1
    return {
        "the first page of an endpoint's deliveries": _best_ms(
            partial(_page, paused, 1)
        ),
        "the last page of them": _best_ms(partial(_page, paused, last)),
        "publish() to nobody": _best_ms(partial(_publish, "nobody")),
        "publish() to 50 endpoints": _best_ms(partial(_publish, f"{OWNER}1")),
        "lease 32 queues and claim what is due": min(_claim() for _ in range(TIMES)),
        "the lag": _best_ms(lambda: stats.oldest_due(timezone.now())),
        "the sweep without retention": _best_ms(lambda: sweep(retention_s=0)),
        "retention, 1,000 deliveries": _retention_ms(),
    }


def _page(endpoint: Endpoint, number: int) -> None:
    list(Delivery.objects.page(endpoint, number=number, size=PAGE))


def _publish(owner: str) -> None:
    with transaction.atomic():
        publish(
            profile=PROFILE,
            owner=owner,
            event_type=EVENT_TYPE,
            data={"document_id": "doc_bench"},
            metadata=CONTEXT,
        )


def _claim() -> float:
    """Claim from one batch of queues; return the milliseconds."""
    return claim_once(all_queues=False)[0] * 1000


def _retention_ms() -> float:
    """Remove the oldest day; return the milliseconds per thousand deliveries, 0 if there is none."""
    # While work is due and no dispatcher is live, retention stops.
    EndpointQueue.objects.update(next_due_at=None)
    before, started = Delivery.objects.count(), time.perf_counter()
    remove_old(timezone.now() - timedelta(days=DAYS - 1), for_s=RETENTION_S)
    took = time.perf_counter() - started
    removed = before - Delivery.objects.count()
    return took * 1000 * 1000 / removed if removed else 0.0


def measure_bytes() -> Figures:
    """Return how many bytes PostgreSQL stores for a delivery, indexes included."""
    count = max(Delivery.objects.count(), 1)
    tables = [model._meta.db_table for model in (Delivery, Event, Attempt)]  # noqa: SLF001
    sizes: Figures = {}
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(
                "SELECT pg_table_size(%s), pg_indexes_size(%s)", (table, table)
            )
            rows, indexes = cursor.fetchone()
            sizes[f"{table}, rows"] = rows / count
            sizes[f"{table}, indexes"] = indexes / count
    return sizes


def _best_ms(work: Callable[[], object]) -> float:
    """Return the milliseconds of the quickest call after a first one."""
    work()
    took = []
    for _ in range(TIMES):
        started = time.perf_counter()
        work()
        took.append(time.perf_counter() - started)
    return min(took) * 1000
