"""Measure pages, probes and the engine as deliveries grow, in a PostgreSQL database of its own."""

from __future__ import annotations

import random
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from benchmarks.deliveries import environments
from benchmarks.deliveries.environments import ScratchEnvironment
from benchmarks.deliveries.filling import (
    AT_ONCE,
    CONTEXT,
    EVENT_TYPE,
    OWNER,
    PROFILE,
    fill,
)
from benchmarks.machine import BenchError
from benchmarks.results import about, titled
from webhooks_core import ids
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.publishing import publish
from webhooks_core.upkeep.sweep import sweep

FIRST = 100_000
TIMES = 5
ADMIN = "/admin/webhooks_core"
PAGES = ("/", "/healthz", "/readyz", "/metrics", "/admin/")
Figures = dict[str, float]


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = "at the end; the first stages have none and 100,000 (%(default)s)"
        parser.add_argument("--deliveries", type=int, default=1_000_000, help=what)

    def handle(self, *args: Any, **options: Any) -> None:
        url, last = environments.postgres(), options["deliveries"]
        if not url:
            raise CommandError("DATABASE_URL is not a postgres://… address")
        sizes = sorted({0, min(FIRST, last), last})
        try:
            stages = self._stages(url, sizes)
        except BenchError as error:
            raise CommandError(str(error)) from error
        rows = {
            what: {
                f"{size:,} deliveries": stage[what]
                for size, stage in zip(sizes, stages, strict=True)
                if what in stage
            }
            for what in stages[-1]
        }
        self.stdout.write(about() + "\n" + titled("Pages and the engine, ms", rows))

    def _stages(self, url: str, sizes: list[int]) -> list[Figures]:
        name, stages = environments.scratch_name(), []
        with (
            tempfile.TemporaryDirectory() as folder,
            environments.scratch_postgres(url, name) as database,
        ):
            environment = environments.environment(database=database, name=name)
            scratch = ScratchEnvironment("PostgreSQL", environment, Path(folder))
            try:
                for before, size in zip((0, *sizes), sizes, strict=False):
                    self.stderr.write(f"{size:,} deliveries")
                    scratch.job_process().do("fill_deliveries", count=size - before)
                    stages.append(scratch.job_process().do("measure"))
            finally:
                scratch.close()
        return stages


def fill_deliveries(count: int) -> None:
    """Add deliveries to 1,000 endpoints: nine in ten delivered, one in ten waiting."""
    if not Endpoint.objects.exists():
        url = "http://127.0.0.1:9/"
        fill([{"url": url, "endpoints": 1_000, "deliveries": 1_000}], 500)
    first = Delivery.objects.order_by("pk")[:1_000]
    pairs = cycle([(row.event_id, row.endpoint_id) for row in first])
    for number in range(0, count, AT_ONCE):
        numbers = range(number, min(number + AT_ONCE, count))
        Delivery.objects.bulk_create(_delivery(n, *next(pairs)) for n in numbers)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _delivery(number: int, event: int, endpoint: int) -> Delivery:
    at = timezone.now() - timedelta(days=30) * random.random()  # noqa: S311 - no secret
    is_waiting = number % 10 == 0
    return Delivery(
        public_id=ids.public_id("dlv_"),
        event_id=event,
        endpoint_id=endpoint,
        replay_number=1 + number,
        status=Delivery.Status.PENDING if is_waiting else Delivery.Status.DELIVERED,
        attempts=0 if is_waiting else 1,
        next_attempt_at=at if is_waiting else None,
        delivered_at=None if is_waiting else at,
        created_at=at,
    )


def measure() -> Figures:
    """Return the milliseconds of each page, and of what publishers and the sweep do."""
    connection.close()
    client = _operator()
    figures = {path: _best_ms(partial(_get, client, path)) for path in _paths()}
    figures["publish() to nobody"] = _best_ms(partial(_publish, "nobody"))
    figures["publish() to 1,000 endpoints"] = _best_ms(partial(_publish, OWNER))
    figures["the sweep without retention"] = _best_ms(lambda: sweep(retention_s=0))
    return figures


def _operator() -> Client:
    users = get_user_model().objects
    user = users.filter(username=OWNER).first() or users.create_superuser(OWNER)
    client = Client(SERVER_NAME="localhost")
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return client


def _get(client: Client, path: str) -> None:
    response = client.get(path)
    if response.status_code not in {200, 503}:  # no worker runs: a probe may say so
        raise RuntimeError(f"{path} answered {response.status_code}")


def _paths() -> Iterator[str]:
    yield from PAGES
    for name, model in (
        ("delivery", Delivery),
        ("event", Event),
        ("endpoint", Endpoint),
    ):
        yield f"{ADMIN}/{name}/"
        yield f"{ADMIN}/{name}/{model.objects.earliest('pk').pk}/change/"


def _publish(owner: str) -> None:
    with transaction.atomic():
        publish(
            profile=PROFILE,
            owner=owner,
            event_type=EVENT_TYPE,
            data={},
            metadata=CONTEXT,
        )


def _best_ms(work: Callable[[], object]) -> float:
    """Return the milliseconds of the quickest call after a first one."""
    work()
    took = []
    for _ in range(TIMES):
        started = time.perf_counter()
        work()
        took.append(time.perf_counter() - started)
    return min(took) * 1000
