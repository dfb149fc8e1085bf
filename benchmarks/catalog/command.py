"""Compare this catalogue with other ways to build it: same data, same server settings, one run.

A contender whose library is missing is left out. The default database is never touched.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson
import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from benchmarks import node, results
from benchmarks.catalog.cases import QUERIES, bodies, seed
from benchmarks.catalog.load import ask, load
from benchmarks.machine import Program, cpu_of, free_port, running

# name: module or script of the contender, and the package that it needs beside ours
CONTENDERS = {
    "Signpost": ("signpost", "catalog"),
    "graphene-django": ("graphene_documented", "graphene_django"),
    "strawberry-django": ("strawberry_optimized", "strawberry_django"),
    "mercurius + jit": ("mercurius.mjs", "mercurius"),
}
Server = tuple[int, Program]  # and its port
BACKENDS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--books", type=int, default=1_000)
        parser.add_argument("--seconds", type=float, default=0.5, help="of one round")
        parser.add_argument("--rounds", type=int, default=10)
        parser.add_argument("--clients", type=int, default=4, help="at once")
        parser.add_argument("--database-url", help="an empty database to use up")
        parser.add_argument("--seed", action="store_true", help="fill the default one")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["seed"]:
            seed(options["books"])
            return
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            database = options["database_url"] or f"sqlite:///{folder}/bench.sqlite3"
            run("manage.py", "migrate", "-v0", database=database)
            count = f"--books={options['books']}"
            run("-m", "benchmarks", "catalog", "--seed", count, database=database)
            servers = {
                name: stack.enter_context(served(module, database, Path(folder)))
                for name, module in available(database)
            }
            agree(servers, options["books"])
            rows = {
                case: measured(servers, case, options, database) for case in QUERIES
            }
        self.stdout.write(
            f"{results.about()}\n\nrequests/s (ms of CPU: server, database)"
        )
        self.stdout.write("\n".join(results.as_markdown(rows)))


def available(database: str) -> Iterator[tuple[str, str]]:
    """Yield the contenders that can be measured here."""
    for name, (module, package) in CONTENDERS.items():
        if module.endswith(".mjs"):
            if node.has(package) and database.startswith("postgres"):
                yield name, module
        elif find_spec(package):
            yield name, module


def environment(database: str) -> dict[str, str]:
    own = {"DATABASE_URL": database, "LOG_LEVEL": "WARNING", "NODE_ENV": "production"}
    return os.environ | own


def run(*arguments: str, database: str) -> None:
    """Run Python on another database, or raise CommandError."""
    command = (sys.executable, *arguments)
    variables = environment(database)
    if subprocess.call(command, env=variables, cwd=settings.BASE_DIR):  # noqa: S603
        raise CommandError("A command failed on the database of the comparison.")


@contextmanager
def served(module: str, database: str, folder: Path) -> Iterator[Server]:
    """Run a contender; yield where it listens, and its process."""
    start = (sys.executable, "-m", "benchmarks.catalog.serve", module)
    command = node.command(module) if module.endswith(".mjs") else start
    port, log = free_port(), folder / f"{module}.log"
    whole = (*command, str(port))
    with running(whole, environment(database), log, port=port) as program:
        yield port, program


def agree(servers: dict[str, Server], books: int) -> None:
    """Raise CommandError unless all contenders answer the readings alike."""
    for case in QUERIES.keys() - {"addBook"}:
        body = bodies(case, books)[1]
        answers = [ask(port, body) for port, _ in servers.values()]
        if len({orjson.dumps(orjson.loads(each)["data"]) for each in answers}) > 1:
            raise CommandError(f"The answers to {case} differ.")


@dataclass
class Figures:
    """The best rate of one server, and the CPU of all its requests."""

    rate: float = 0.0
    requests: int = 0
    server: float = 0.0
    database: float = 0.0

    def __str__(self) -> str:
        each = 1000 / self.requests
        cpu = f"{self.server * each:.2f}, {self.database * each:.2f}"
        return f"{self.rate:,.0f} ({cpu})"


def measured(
    servers: dict[str, Server], case: str, options: dict[str, Any], database: str
) -> dict[str, str]:
    """Return the figures of one operation by contender.

    They take turns within a round; what else the machine does only ever slows a round.
    """
    sent = bodies(case, options["books"])
    given = {"seconds": options["seconds"], "clients": options["clients"]}
    found = {name: Figures() for name in servers}
    for port, _ in servers.values():
        load(port, sent, **given)  # to warm up
    for _ in range(options["rounds"]):
        for name, (port, program) in servers.items():
            figures = found[name]
            figures.server -= program.cpu()
            figures.database -= cpu_of(backends(database))
            requests, seconds = load(port, sent, **given)
            figures.server += program.cpu()
            figures.database += cpu_of(backends(database))
            figures.rate = max(figures.rate, requests / seconds)
            figures.requests += requests
    return {name: str(figures) for name, figures in found.items()}


def backends(database: str) -> list[int]:
    """Return the processes of PostgreSQL that serve a database."""
    if not database.startswith("postgres"):
        return []
    with psycopg.connect(database) as connection:
        own = connection.info.backend_pid
        pids = [pid for (pid,) in connection.execute(BACKENDS)]
    return [pid for pid in pids if pid != own]
