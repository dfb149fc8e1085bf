"""Compare this catalogue with other ways to build it: same data, same server settings, one run.

Installs nothing: `make bench-peers` does, and a contender whose library is missing is left
out. The default database is never touched.
"""

from __future__ import annotations

import json
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from importlib import metadata
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from benchmarks import node
from benchmarks.catalog.cases import POSTGRAPHILE, QUERIES, bodies, seed
from benchmarks.catalog.load import Client, Load, load
from benchmarks.catalog.servers import BENCHMARKS, Server, prepare, run, serve, server
from webhooks_core.management.argument_types import integer_between, seconds

# name: module or script of the contender, and the package that it needs beside ours
CONTENDERS = {
    "Signpost": ("signpost", "graphene"),
    "graphene-django, documented": ("graphene_documented", "graphene-django"),
    "strawberry-django, optimizer": (
        "strawberry_optimized",
        "strawberry-graphql-django",
    ),
    "ariadne, joins by hand": ("ariadne_by_hand", "ariadne"),
    "mercurius + graphql-jit": ("mercurius.mjs", "mercurius"),
    "PostGraphile": ("postgraphile.mjs", "postgraphile"),
    "JsonResponse of values()": ("plain_json", "django"),
    "driver and orjson": ("driver_alone", "orjson"),
}
LIMITS = list(CONTENDERS)[-2:]
HERE = Path(__file__).parent / "contenders"
Loads = dict[str, dict[str, Load]]  # by operation and contender


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--books", type=integer_between(1), default=1_000, help="%(default)s"
        )
        parser.add_argument(
            "--seconds", type=seconds(0.01, 3600), default=0.5, help="of one round"
        )
        parser.add_argument(
            "--rounds", type=integer_between(1), default=10, help="%(default)s"
        )
        parser.add_argument(
            "--clients", type=integer_between(1, 1000), default=4, help="at once"
        )
        parser.add_argument("--database-url", help="an empty database to use up")
        parser.add_argument(
            "--serve",
            choices=[m for m, _ in CONTENDERS.values() if not m.endswith(".mjs")],
            help="be one of these alone",
        )
        parser.add_argument(
            "--seed", action="store_true", help="only fill the database"
        )
        parser.add_argument(
            "--port", type=integer_between(1, 65_535), help="of --serve"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["serve"]:
            if options["port"] is None:
                raise CommandError("--serve needs --port")
            serve(options["serve"], options["port"])
        elif options["seed"]:
            seed(options["books"])
        else:
            self.compare(options)

    def compare(self, options: dict[str, Any]) -> None:
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            database = options["database_url"] or f"sqlite:///{folder}/bench.sqlite3"
            books = options["books"]
            prepare(database)
            run(*BENCHMARKS, "catalog", "--seed", f"--books={books}", database=database)
            lacking = dict(lacks(database))
            servers = {
                name: stack.enter_context(server(module, database))
                for name, (module, _) in CONTENDERS.items()
                if name not in lacking
            }
            agree(servers, books)
            loads = measure(servers, options)
        self.stdout.write(
            f"{books:,} books, {options['clients']} clients, {options['rounds']} rounds "
            f"of {options['seconds']} s; in brackets Signpost's multiple\n"
        )
        self.table("requests/s, best round", loads, lambda row: f"{row.rate:,.0f}")
        if all(row.cpu for by_name in loads.values() for row in by_name.values()):
            self.table(
                "ms of the server's CPU per request, all rounds",
                loads,
                lambda row: f"{row.cpu_ms:.2f}",
                lambda ours, theirs: theirs.cpu_ms / ours.cpu_ms,
            )

    def table(
        self,
        title: str,
        loads: Loads,
        shown: Callable[[Load], str],
        multiple: Callable[[Load, Load], float] = lambda ours, theirs: (
            ours.rate / theirs.rate
        ),
    ) -> None:
        """Print a table as Markdown."""
        names = list(next(iter(loads.values())))
        self.stdout.write(f"\n{title}\n\n| operation | {' | '.join(names)} |")
        self.stdout.write("|---|" + "---:|" * len(names))
        for case, by_name in loads.items():
            ours = by_name["Signpost"]
            cells = [
                shown(row) + ("" if row is ours else f" ({multiple(ours, row):.2f})")
                for row in by_name.values()
            ]
            self.stdout.write(f"| {case} | {' | '.join(cells)} |")


def agree(servers: dict[str, Server], books: int) -> None:
    """Raise CommandError unless all GraphQL contenders answer the readings alike."""
    for case in QUERIES:
        if case == "addBook":
            continue
        answers = {}
        for name in [name for name in servers if name not in LIMITS]:
            body = bodies(case, books, queries(name))[1]
            with closing(Client.of(servers[name].port)) as client:
                answers[name] = _alike(json.loads(client.send(body))["data"])
        for name, answer in answers.items():
            if answer != answers["Signpost"]:
                raise CommandError(f"{name} answers {case} differently.")


def queries(name: str) -> Mapping[str, str]:
    return POSTGRAPHILE if name == "PostGraphile" else QUERIES


def _alike(data: Any) -> Any:
    """Return an answer as Signpost gives it: counts as numbers, ids as text."""
    if isinstance(data, list):
        return [_alike(row) for row in data]
    if not isinstance(data, dict):
        return data
    if data.keys() == {"totalCount"}:
        return data["totalCount"]
    return {k: str(v) if k == "id" else _alike(v) for k, v in data.items()}


def lacks(database: str) -> Iterator[tuple[str, str]]:
    """Return the contenders that cannot be measured here, and why."""
    for name, (module, package) in CONTENDERS.items():
        if not is_installed(module, package):
            yield name, f"{package} is not installed"
        elif module.endswith(".mjs") and not database.startswith("postgres"):
            yield name, "no PostgreSQL"


def is_installed(module: str, package: str) -> bool:
    if module.endswith(".mjs"):
        return node.has(package)
    return package in {each.name.lower() for each in metadata.distributions()}


def measure(servers: dict[str, Server], options: dict[str, Any]) -> Loads:
    """Return the loads by operation and contender.

    Contenders take turns within a round; what else the machine does only ever slows a round.
    """
    seconds, clients = options["seconds"], options["clients"]
    loads: Loads = {}
    for case in QUERIES:
        sent = {name: bodies(case, options["books"], queries(name)) for name in servers}
        loads[case] = {name: Load() for name in servers}
        for name, target in servers.items():  # to warm up
            load(target.port, sent[name], seconds=seconds, clients=clients)
        for _ in range(options["rounds"]):
            for name, target in servers.items():
                before = target.cpu()
                requests, took = load(
                    target.port, sent[name], seconds=seconds, clients=clients
                )
                loads[case][name].add(requests, took, target.cpu() - before)
    return loads
