"""Measure pages, probes and the engine as deliveries grow, in a PostgreSQL database of its own."""

from __future__ import annotations

import os
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction
from django.test import Client

from benchmarks.deliveries import environments
from benchmarks.deliveries.environments import BenchError, ScratchEnvironment
from benchmarks.deliveries.filling import CONTEXT, EVENT_TYPE, OWNER, PROFILE, fill
from benchmarks.deliveries.report import Table
from benchmarks.results import about
from webhooks_core.management.argument_types import integer_between
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
        parser.add_argument(
            "--deliveries",
            type=integer_between(1),
            default=1_000_000,
            help="at the end; the first stages have none and 100,000 (%(default)s)",
        )
        parser.add_argument(
            "--postgres",
            default=os.environ.get("DATABASE_URL", ""),
            metavar="URL",
            help="a server to make a scratch database on (default: DATABASE_URL)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        url, last = options["postgres"], options["deliveries"]
        if not url.startswith(("postgres://", "postgresql://")):
            raise CommandError("--postgres: not a postgres://… address")
        sizes = sorted({0, min(FIRST, last), last})
        try:
            stages = self._stages(url, sizes)
        except BenchError as error:
            raise CommandError(str(error)) from error
        rows = [
            (what, *(f"{stage[what]:,.1f}" for stage in stages if what in stage))
            for what in stages[-1]
        ]
        columns = ("milliseconds", *(f"{size:,} deliveries" for size in sizes))
        table = Table("Pages and the engine", columns, rows)
        self.stdout.write("\n".join([about(), "", *table.lines()]))

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
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_DELIVERIES, {"count": count})
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


# Copies of the first deliveries, with times over a month.
_DELIVERIES = """
INSERT INTO webhooks_core_delivery (public_id, event_id, endpoint_id, status, attempts,
 interruptions, lone_interruptions, next_attempt_at, last_error, delivered_at, created_at, "trigger")
SELECT 'dlv_bench' || n || '_' || first.id, event_id, endpoint_id,
 CASE n % 10 WHEN 0 THEN 0 ELSE 1 END, CASE n % 10 WHEN 0 THEN 0 ELSE 1 END, 0, 0,
 CASE n % 10 WHEN 0 THEN at END, '', CASE n % 10 WHEN 0 THEN NULL ELSE at END, at, 'event'
FROM generate_series(1, %(count)s / 1000) n,
 LATERAL (SELECT now() - interval '30 days' * random() AS at) times,
 LATERAL (SELECT * FROM webhooks_core_delivery WHERE public_id NOT LIKE 'dlv_bench%%'
  ORDER BY id LIMIT 1000) first"""


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
            data={"document_id": "doc_bench"},
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
