"""Compare this catalogue with other ways to build it: same data, same server settings, one run.

Installs nothing: strawberry-django and ariadne come from requirements-bench.lock, and a
contender whose library is missing is left out. The default database is never touched.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.test.utils import override_settings
from django.urls import path
from django.utils.module_loading import import_string

from catalog.benchmarks.cases import QUERIES, bodies, seed
from catalog.benchmarks.load import Client, rate

# name: module of the contender, and the library that it needs beside ours
CONTENDERS = {
    "Signpost": ("signpost", "graphene"),
    "graphene-django, documented": ("graphene_documented", "graphene_django"),
    "strawberry-django, optimizer": ("strawberry_optimized", "strawberry_django"),
    "ariadne, joins by hand": ("ariadne_by_hand", "ariadne"),
    "JsonResponse of values()": ("plain_json", "django"),
    "driver and orjson": ("driver_alone", "orjson"),
}
GRAPHQL = list(CONTENDERS)[:4]


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--books", type=int, default=1_000)
        parser.add_argument("--seconds", type=float, default=0.5, help="of one round")
        parser.add_argument("--rounds", type=int, default=10)
        parser.add_argument("--clients", type=int, default=4)
        parser.add_argument("--database-url", help="an empty database to use up")
        parser.add_argument("--serve", choices=[m for m, _ in CONTENDERS.values()])
        parser.add_argument("--seed", action="store_true")
        parser.add_argument("--port", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["serve"]:
            serve(options["serve"], options["port"])
        elif options["seed"]:
            seed(options["books"])
        else:
            self.compare(options)

    def compare(self, options: dict[str, Any]) -> None:
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            database = options["database_url"] or f"sqlite:///{folder}/bench.sqlite3"
            run("migrate", "-v0", database=database)
            run(
                "bench_catalog",
                "--seed",
                f"--books={options['books']}",
                database=database,
            )
            ports = {
                name: stack.enter_context(server(module, database))
                for name, (module, needs) in CONTENDERS.items()
                if find_spec(needs)
            }
            agree(ports, options["books"])
            self.report(measure(ports, options), options)

    def report(
        self, rates: dict[str, dict[str, float]], options: dict[str, Any]
    ) -> None:
        """Print the table as Markdown: requests per second, and our multiple of each."""
        names = list(next(iter(rates.values())))
        self.stdout.write(
            f"{options['books']:,} books, {options['clients']} clients, "
            f"best of {options['rounds']} rounds of {options['seconds']} s; requests/s "
            "(in brackets: Signpost's multiple)\n"
        )
        self.stdout.write("| operation | " + " | ".join(names) + " |")
        self.stdout.write("|---|" + "---:|" * len(names))
        for case, found in rates.items():
            ours = found["Signpost"]
            cells = [
                f"{value:,.0f}"
                + ("" if name == "Signpost" else f" ({ours / value:.2f})")
                for name, value in found.items()
            ]
            self.stdout.write(f"| {case} | " + " | ".join(cells) + " |")


def serve(module: str, port: int) -> None:
    """Serve one contender as the whole site is served, until the process is ended."""
    view = import_module(f"catalog.benchmarks.contenders.{module}").view
    routes = (path("graphql", view),)
    with override_settings(ROOT_URLCONF=routes):
        application = import_string(settings.ASGI_APPLICATION)
        uvicorn.run(
            application, host="127.0.0.1", port=port, log_config=None, access_log=False
        )


def environment(database: str) -> dict[str, str]:
    return os.environ | {"DATABASE_URL": database, "LOG_LEVEL": "WARNING"}


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments]


def run(*arguments: str, database: str) -> None:
    subprocess.run(command(*arguments), env=environment(database), check=True)  # noqa: S603


@contextmanager
def server(module: str, database: str) -> Iterator[int]:
    """Run a contender in a process of its own; yield its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    arguments = command("bench_catalog", f"--serve={module}", f"--port={port}")
    with subprocess.Popen(arguments, env=environment(database)) as process:  # noqa: S603
        try:
            wait_for(port, process)
            yield port
        finally:
            process.terminate()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        try:
            return Client.of(port).connection.close()
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.1)
    raise CommandError("A server did not start.")


def agree(ports: dict[str, int], books: int) -> None:
    """Raise CommandError unless all GraphQL contenders answer the readings alike."""
    for case in QUERIES:
        if case == "addBook":
            continue
        body = bodies(case, books)[1]
        answers = {
            name: json.loads(Client.of(port).send(body))
            for name, port in ports.items()
            if name in GRAPHQL
        }
        for name, answer in answers.items():
            if answer != answers["Signpost"]:
                raise CommandError(f"{name} answers {case} differently.")


def measure(
    ports: dict[str, int], options: dict[str, Any]
) -> dict[str, dict[str, float]]:
    """Return the best round by operation and contender.

    Contenders take turns within a round; what else the machine does only ever slows a round.
    """
    rates: dict[str, dict[str, float]] = {}
    for case in QUERIES:
        sent = bodies(case, options["books"])
        found: dict[str, list[float]] = {name: [] for name in ports}
        for _ in range(options["rounds"] + 1):  # the first one warms up
            for name, port in ports.items():
                found[name].append(
                    rate(
                        port,
                        sent,
                        seconds=options["seconds"],
                        clients=options["clients"],
                    )
                )
        rates[case] = {name: max(values[1:]) for name, values in found.items()}
    return rates
