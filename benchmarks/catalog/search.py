"""Time an import, searches and pages in a large catalogue, in its own database."""

from __future__ import annotations

import resource
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path
from statistics import median
from typing import Any

from django.core.management.base import BaseCommand
from django.db import connection

from benchmarks.catalog.million import QUESTIONS, write
from benchmarks.catalog.servers import BENCHMARKS, MANAGE, prepare, run
from catalog.execution.context import Context
from catalog.execution.operations import Executor, GraphQLRequest
from catalog.schema.contract import schema
from webhooks_core.management.argument_types import integer_between


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--books", type=integer_between(1), default=1_000_000, help="%(default)s"
        )
        parser.add_argument(
            "--times", type=integer_between(1), default=5, help="the median counts"
        )
        parser.add_argument("--database-url", help="an empty database to use up")
        parser.add_argument(
            "--ask", action="store_true", help="of the default database"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["ask"]:
            self.ask(options["times"])
        else:
            self.compare(options)

    def compare(self, options: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "books.csv"
            database = options["database_url"] or f"sqlite:///{folder}/bench.sqlite3"
            prepare(database)
            write(file, options["books"])
            started, before = time.perf_counter(), cpu()
            run(*MANAGE, "import_catalog", str(file), database=database)
            took = time.perf_counter() - started
            size = file.stat().st_size / 1e6
            memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            self.stdout.write(
                f"{options['books']:,} books imported from {size:.0f} MB of CSV in "
                f"{took:.0f} s ({cpu() - before:.0f} s of CPU), with at most {memory:.0f} MB of memory"
            )
            self.stdout.flush()
            run(
                *BENCHMARKS,
                "search",
                "--ask",
                f"--times={options['times']}",
                database=database,
            )

    def ask(self, times: int) -> None:
        """Ask each question several times; print the median and what came back."""
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("VACUUM ANALYZE")  # as autovacuum does within the minute
        executor = Executor(schema.graphql_schema)
        self.stdout.write("| operation | answer | ms |\n|---|---:|---:|")
        for name, (query, variables) in QUESTIONS.items():
            request = GraphQLRequest(query, None, variables)
            took, body = [], {}
            for _ in range(times + 1):  # the first one warms up
                started = time.perf_counter()
                body = executor.answer(request, Context()).body
                took.append((time.perf_counter() - started) * 1000)
            self.stdout.write(
                f"| {name} | {described(body)} | {median(took[1:]):.1f} |"
            )


def cpu() -> float:
    """Return the seconds of CPU that the processes run so far have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def described(body: dict[str, Any]) -> str:
    """Return the number of rows of an answer, or the code of its error."""
    if errors := body.get("errors"):
        code: str = errors[0]["extensions"]["code"]
        return code
    [answer] = body["data"].values()
    if isinstance(answer, dict):
        answer = answer.get("nodes", answer.get("totalCount"))
    return f"{len(answer) if isinstance(answer, list) else answer or 0:,}"
