"""Let several processes spend one budget, and print by how much they exceed it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any

import redis
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from benchmarks.catalog.servers import BENCHMARKS, environment, prepare
from benchmarks.deliveries.environments import (
    free_port,
    scratch_name,
    scratch_postgres,
    until,
)
from gateway.chat.core.context import ChatContext
from gateway.chat.core.model_request import ModelRequest
from gateway.chat.core.usage_tokens import Usage
from gateway.chat.metering.budget_definitions import Definitions, Loaded
from gateway.chat.metering.budget_stores import stores
from gateway.chat.metering.budgets import BudgetExceededError, Budgets
from gateway.chat.metering.usage import CompletedRequest
from gateway.configuration.shapes import BudgetEntry, ModelEntry
from gateway.identity import Caller
from webhooks_core.management.argument_types import integer_between, seconds
from webhooks_core.web.thread_pool import ThreadPool, with_connection

REQUEST = b'{"model": "bench", "messages": [{"role": "user", "content": "Hello"}]}'
STARTS_IN_S = 6.0
COLUMNS = (
    *("storage", "limit", "admitted", "too many", "in flight"),
    *("a second of the others", "longest wait"),
)


@dataclass(frozen=True, slots=True)
class Load:
    """What each process sends: requests per second, how long one lasts, and for how long."""

    processes: int
    rate: int
    lasts_s: float
    spent_after_s: float

    @property
    def limit(self) -> int:
        return round(self.processes * self.rate * self.spent_after_s)

    @property
    def total_s(self) -> float:
        return self.spent_after_s + 4


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--processes", type=integer_between(1, 64), default=4, help="%(default)s"
        )
        parser.add_argument(
            "--rate",
            type=integer_between(1, 10_000),
            default=100,
            help="requests per second and process (default: %(default)s)",
        )
        parser.add_argument(
            "--lasts", type=seconds(0, 60), default=0.05, help="one request"
        )
        parser.add_argument(
            "--spent-after",
            type=seconds(1, 600),
            default=6.0,
            help="when the budget is used up",
        )
        parser.add_argument("--postgres", help="a server for a database of its own")
        parser.add_argument("--spend", help="(internal) be one of the processes")

    def handle(self, *args: Any, **options: Any) -> None:
        load = Load(
            options["processes"],
            options["rate"],
            options["lasts"],
            options["spent_after"],
        )
        if options["spend"]:
            start_at, name = options["spend"].split(":")
            spent = asyncio.run(_spend(name, load, float(start_at)))
            self.stdout.write(json.dumps(spent))
            return
        self.stdout.write(f"| {' | '.join(COLUMNS)} |")
        self.stdout.write("|---|" + "---:|" * (len(COLUMNS) - 1))
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            databases = {"SQLite": f"sqlite:///{Path(folder) / 'bench.sqlite3'}"}
            if url := options["postgres"]:
                scratch = scratch_postgres(url, scratch_name())
                databases["PostgreSQL"] = stack.enter_context(scratch)
            for name, database in databases.items():
                prepare(database)
                self._measure(name, database, load)

    def _measure(self, name: str, database: str, load: Load) -> None:
        self._row(f"{name} alone", _spent_by_all(load, database, ""), load)
        # Redis beside SQLite is refused in production.
        if name == "SQLite" or not which("redis-server"):
            return
        for dies in (False, True):
            with _redis() as (url, process):
                killed = partial(_kill_later, process, load) if dies else None
                spent = _spent_by_all(load, database, url, killed)
            text = "Redis, killed half-way" if dies else f"Redis and {name}"
            self._row(text, spent, load)

    def _row(self, name: str, spent: list[dict[str, float]], load: Load) -> None:
        admitted = sum(int(each["admitted"]) for each in spent)
        in_flight = load.processes * max(1, round(load.rate * load.lasts_s))
        others = (load.processes - 1) * load.rate
        wait = max(each["wait"] for each in spent)
        over = max(0, admitted - load.limit)
        cells = (name, load.limit, admitted, over, in_flight, others, f"{wait:.2f} s")
        self.stdout.write(f"| {' | '.join(map(str, cells))} |")
        self.stdout.flush()


def _spent_by_all(
    load: Load, database: str, redis_url: str, meanwhile: Any = None
) -> list[dict[str, float]]:
    """Return what each process says. Raises CommandError."""
    start_at, name = time.time() + STARTS_IN_S, scratch_name()
    command = (
        *(*BENCHMARKS, "budgets", f"--spend={start_at}:{name}"),
        *(f"--processes={load.processes}", f"--rate={load.rate}"),
        *(f"--lasts={load.lasts_s}", f"--spent-after={load.spent_after_s}"),
    )
    variables = environment(database) | {"REDIS_URL": redis_url}
    processes = [
        subprocess.Popen(  # noqa: S603
            command,
            env=variables | {"LOG_LEVEL": "ERROR"},
            cwd=settings.BASE_DIR,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(load.processes)
    ]
    if meanwhile:
        meanwhile(start_at)
    outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise CommandError("A process failed.")
    return [json.loads(output.splitlines()[-1]) for output in outputs]


async def _spend(name: str, load: Load, start_at: float) -> dict[str, float]:
    """Send requests at a steady rate; return how many were admitted, and the longest wait."""
    pool = ThreadPool(1, name="budgets")

    def in_thread(function: Any) -> Any:
        return pool.run(partial(with_connection, function))

    entry = BudgetEntry(name[:64], "requests", "month", load.limit)
    definitions = Definitions(in_thread, load=lambda *_: Loaded([entry], {}))
    budgets = Budgets(definitions, stores(in_thread, settings.REDIS_URL))
    budgets.start()
    waits: list[float] = []
    await asyncio.sleep(max(0.0, start_at - time.time()))
    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for number in range(round(load.rate * load.total_s)):
            pause = began + number / load.rate - time.monotonic()
            await asyncio.sleep(max(0.0, pause))
            group.create_task(_request(budgets, load, waits))
    await budgets.stop()
    pool.close(wait_s=5)
    return {"admitted": len(waits), "wait": max(waits, default=0.0)}


async def _request(budgets: Budgets, load: Load, waits: list[float]) -> None:
    context = ChatContext(
        Caller("bench", "bench"),
        ModelEntry("bench", "echo", ()),
        ModelRequest.parse(REQUEST),
        "bench",
    )
    began = time.monotonic()
    with suppress(BudgetExceededError):
        await budgets.reserve(context)
        waits.append(time.monotonic() - began)
        await asyncio.sleep(load.lasts_s)
        context.status, context.usage = 200, Usage(1, 1)
        budgets.settle(context.reservation, CompletedRequest.of(context))


@contextmanager
def _redis() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a redis-server that keeps nothing on disk."""
    port = free_port()
    url = f"redis://127.0.0.1:{port}/0"
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with (
        subprocess.Popen(  # noqa: S603
            command, cwd=tempfile.gettempdir(), stdout=subprocess.DEVNULL
        ) as process,
        redis.from_url(url) as client,
    ):

        def answers() -> bool:
            with suppress(redis.RedisError):
                return bool(client.ping())
            return False

        try:
            until(answers, "Redis answers")
            yield url, process
        finally:
            process.kill()


def _kill_later(process: subprocess.Popen[bytes], load: Load, start_at: float) -> None:
    time.sleep(max(0.0, start_at + load.spent_after_s / 2 - time.time()))
    process.kill()
