"""Jobs that measure the engine and its pages with the rows that there are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path

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
OWNED = 5
OWNER_FILTERS = (
    *("status=failed_undelivered", "status=failed", "status=pending", "status=all"),
    *("status=delivered&hours=24", "status=all&answer=5xx", "status=open&hours=168"),
    *("status=open&answer=4xx", "status=pending&answer=5xx", "status=all&answer=none"),
    "status=failed&answer=4xx&hours=168",
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


def measure_owner_pages() -> Figures:
    """Return the milliseconds of each page of an account that owns the first endpoints.

    One of them is paused, and most of what waits is for it. The account gets them for the time
    of the measurement.
    """
    connection.close()
    statements.limit(STATEMENT_S)
    with transaction.atomic():
        client = _owner()
        figures = {
            name: _best_ms(partial(_get, client, path))
            for name, path in _owner_paths().items()
        }
        transaction.set_rollback(True)
    return figures


def _owner() -> Client:
    """Return the client of an account to which the first endpoints and an event belong."""
    user = get_user_model().objects.create_user("owner-of-pages")
    mine = {"profile": "recording", "owner": str(user.pk)}
    for endpoint in Endpoint.objects.order_by("pk")[:OWNED]:
        public_id = f"ep_{endpoint.public_id.rpartition('_')[2]}"
        Endpoint.objects.filter(pk=endpoint.pk).update(public_id=public_id, **mine)
    if delivery := _owned_delivery():
        Event.objects.filter(pk=delivery.event_id).update(**mine)
    client = Client(SERVER_NAME="localhost")
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return client


def _owned_delivery() -> Delivery | None:
    first = Endpoint.objects.earliest("pk")
    rows = Delivery.objects.filter(endpoint=first).select_related("event", "endpoint")
    return rows.order_by("-pk").first()


def _owner_paths() -> Mapping[str, str]:
    base, since = "/accounts/webhooks", "since=2026-01-01T00:00"
    one, two = (
        f"{base}/endpoints/{endpoint.public_id}"
        for endpoint in Endpoint.objects.order_by("pk")[:2]
    )
    paths = {
        "the overview": "/accounts",
        "the endpoints": base,
        "an endpoint, much waits": one,
        "an endpoint, much failed": two,
        "a replay, counted": f"{one}/replay?kind=failed&{since}",
        "a replay, much counted": f"{two}/replay?kind=failed&{since}",
        "the changes": f"{base}/changes",
        "the event types": f"{base}/event-types",
    }
    for query in OWNER_FILTERS:
        paths[f"deliveries, {query}"] = f"{base}/deliveries?{query}"
    if delivery := _owned_delivery():
        paths["a delivery"] = f"{base}/deliveries/{delivery.public_id}"
        paths["why not"] = f"{base}/why?event_id={delivery.event.public_id}"
    return paths


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
    clock = _processor_clock() or time.perf_counter
    took = []
    for _ in range(TIMES):
        started = clock()
        work()
        took.append(clock() - started)
    return min(took) * 1000


def _processor_clock() -> Callable[[], float] | None:
    """Return a clock of the processor time of this process and of its database connection.

    Other programs on the same processors do not change it. None if the database is not on this
    machine, as Linux shows it.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = Path(f"/proc/{cursor.fetchone()[0]}")
    try:
        is_here = (backend / "comm").read_text().startswith("postgres")
    except OSError:
        return None
    schedstat = backend / "schedstat"  # begins with nanoseconds
    return (
        (lambda: time.process_time() + int(schedstat.read_text().split()[0]) / 1e9)
        if is_here
        else None
    )
