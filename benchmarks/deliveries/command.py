"""Measure the delivery engine against the limit of its HTTP client, in environments of its own.

Nothing of an operator's is touched: databases, broker keys and processes are made for the run
and removed after it. Times are worth something as ratios within one run only.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from benchmarks.deliveries import live
from benchmarks.deliveries.bench import Bench, Options, scratch_environments
from benchmarks.deliveries.environments import BenchError
from benchmarks.deliveries.neighbours import neighbours
from benchmarks.deliveries.report import Report
from benchmarks.deliveries.speed import other_queues, speed
from webhooks_core.management.argument_types import integer_between

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
            "--dispatchers",
            type=integer_between(1, 100),
            default=2,
            help="at most at once",
        )
        parser.add_argument(
            "--rounds", type=integer_between(1), help="of each comparison"
        )
        parser.add_argument(
            "--postgres",
            default=_postgres_of(os.environ.get("DATABASE_URL", "")),
            metavar="URL",
            help="a server to make a scratch database on (default: DATABASE_URL)",
        )
        parser.add_argument(
            "--redis",
            default=os.environ.get("REDIS_URL", ""),
            metavar="URL",
            help="a broker for keys of its own (default: REDIS_URL)",
        )

    def handle(self, *args: Any, **given: Any) -> None:
        options = _options(given)
        report = Report()
        try:
            with scratch_environments(options, report, self.stderr.write) as bench:
                failed = [name for name in options.parts if not _done(bench, name)]
        except BenchError as error:
            raise CommandError(str(error)) from error
        finally:  # after Ctrl-C too
            if report.tables:
                self.stdout.write("\n".join(report.as_markdown()))
        if failed:
            raise CommandError(f"Failed: {', '.join(failed)}")


def _done(bench: Bench, name: str) -> bool:
    """Run a part; the results of the others are printed even if it fails."""
    try:
        PARTS[name](bench)
    except BenchError as error:
        bench.report.skipped[name] = str(error)
        return False
    return True


def _options(given: dict[str, Any]) -> Options:
    parts = ",".join(given["only"]).split(",") if given["only"] else list(PARTS)
    if unknown := [part for part in parts if part not in PARTS]:
        raise CommandError(f"--only: no such part: {', '.join(unknown)}")
    _check_url("--postgres", given["postgres"], ("postgres://", "postgresql://"))
    _check_url("--redis", given["redis"], ("redis://", "rediss://", "unix://"))
    quick = given["quick"]
    return Options(
        parts=parts,
        quick=quick,
        dispatchers=given["dispatchers"],
        postgres=given["postgres"],
        redis=given["redis"],
        rounds=given["rounds"] or (1 if quick else 5),
    )


def _check_url(option: str, url: str, schemes: tuple[str, ...]) -> None:
    # The libraries would repeat a malformed one, password and all.
    if url and not url.startswith(schemes):
        raise CommandError(f"{option}: not a {schemes[0]}… address")


def _postgres_of(url: str) -> str:
    return url if url.startswith(("postgres://", "postgresql://")) else ""
