"""Measure pages, probes and the engine as deliveries grow, in a PostgreSQL database of its own."""

from __future__ import annotations

import os
import tempfile
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from benchmarks.deliveries import environments
from benchmarks.deliveries.environments import BenchError, ScratchEnvironment
from benchmarks.deliveries.report import Table
from benchmarks.results import about
from webhooks_core.management.argument_types import integer_between

FIRST = 100_000
PARTS = {
    "measure_pages": "Pages and probes, milliseconds",
    "measure_owner_pages": "Pages of an owner, milliseconds",
    "measure_engine": "The engine, milliseconds",
    "measure_bytes": "Bytes per delivery",
}
Stage = Mapping[str, Mapping[str, float]]


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
            "--endpoints", type=integer_between(2), default=20_000, help="%(default)s"
        )
        parser.add_argument(
            "--postgres",
            default=os.environ.get("DATABASE_URL", ""),
            metavar="URL",
            help="a server to make a scratch database on (default: DATABASE_URL)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        url = options["postgres"]
        if not url.startswith(("postgres://", "postgresql://")):
            raise CommandError("--postgres: not a postgres://… address")
        sizes = sorted({0, min(FIRST, options["deliveries"]), options["deliveries"]})
        try:
            stages = self._measure(url, sizes, options["endpoints"])
        except BenchError as error:
            raise CommandError(str(error)) from error
        facts = about()
        command = "python -m benchmarks scale --deliveries {deliveries} --endpoints {endpoints}"
        self.stdout.write(
            f"{facts['at']}, commit {facts['commit']}, {facts['machine']}; "
            f"`{command.format(**options)}`\n\n"
        )
        for part, title in PARTS.items():
            table = _table(title, sizes, [stage[part] for stage in stages])
            self.stdout.write("\n".join(table.lines()) + "\n")

    def _measure(self, url: str, sizes: Sequence[int], endpoints: int) -> list[Stage]:
        name = environments.scratch_name()
        stages: list[Stage] = []
        with (
            tempfile.TemporaryDirectory() as folder,
            environments.scratch_postgres(url, name) as database,
        ):
            environment = environments.environment(database=database, name=name)
            scratch = ScratchEnvironment("PostgreSQL", environment, Path(folder))
            try:
                job_process = scratch.job_process()
                job_process.do("fill_endpoints", count=endpoints)
                for before, size in zip((0, *sizes), sizes, strict=False):
                    self.stderr.write(f"{size:,} deliveries")
                    job_process.do("fill_deliveries", count=size - before)
                    stages.append({part: job_process.do(part) for part in PARTS})
            finally:
                scratch.close()
        return stages


def _table(
    title: str, sizes: Sequence[int], stages: Sequence[Mapping[str, float]]
) -> Table:
    rows = [
        (what, *(f"{stage[what]:,.1f}" if what in stage else "" for stage in stages))
        for what in stages[-1]
    ]
    return Table(title, ("", *(f"{size:,}" for size in sizes)), rows)
