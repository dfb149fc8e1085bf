"""Measure the delivery engine against the limit of its HTTP client, in environments of its own.

Nothing of an operator's is touched: databases, broker keys and processes are made for the run
and removed after it, also on the servers of DATABASE_URL and REDIS_URL. Times are worth something
as ratios within one run only.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from benchmarks.deliveries import live
from benchmarks.deliveries.bench import Bench, Options, scratch_environments
from benchmarks.deliveries.environments import postgres
from benchmarks.deliveries.neighbours import neighbours
from benchmarks.deliveries.speed import other_queues, speed
from benchmarks.machine import BenchError
from benchmarks.results import about, titled
from webhooks_core.management.command_line import integer_between

PARTS = {
    "speed": speed,
    "others": other_queues,
    "neighbours": neighbours,
    "latency": live.latency,
    "kill": live.kill,
}


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--only",
            action="append",
            default=[],
            metavar="PART,…",
            help=f"of {', '.join(PARTS)}; may be given several times",
        )
        parser.add_argument("--quick", action="store_true", help="under a minute")
        parser.add_argument(
            "--rounds", type=integer_between(1), help="of each comparison"
        )

    def handle(self, *args: Any, **given: Any) -> None:
        failed = []
        try:
            with scratch_environments(_options(given), self.stderr.write) as bench:
                try:
                    failed = [
                        name for name in bench.options.parts if not _done(bench, name)
                    ]
                finally:  # after Ctrl-C too
                    self._print(bench)
        except BenchError as error:
            raise CommandError(str(error)) from error
        if failed:
            raise CommandError(f"Failed: {', '.join(failed)}")

    def _print(self, bench: Bench) -> None:
        self.stdout.write(about())
        for title, rows in bench.tables.items():
            self.stdout.write(titled(title, rows))
        for what, reason in bench.skipped.items():
            self.stdout.write(f"Not measured: {what} ({reason}).")


def _done(bench: Bench, name: str) -> bool:
    """Run a part; the results of the others are printed even if it fails."""
    try:
        PARTS[name](bench)
    except BenchError as error:
        bench.skipped[name] = str(error)
        return False
    return True


def _options(given: dict[str, Any]) -> Options:
    parts = ",".join(given["only"]).split(",") if given["only"] else list(PARTS)
    if unknown := [part for part in parts if part not in PARTS]:
        raise CommandError(f"--only: no such part: {', '.join(unknown)}")
    return Options(
        parts=parts,
        quick=given["quick"],
        rounds=given["rounds"] or (1 if given["quick"] else 5),
        postgres=postgres(),
        redis=os.environ.get("REDIS_URL", ""),
    )
