"""One run of the deliveries benchmark: its options, its environments, and the order of its parts."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import psycopg
from redis.exceptions import RedisError

from benchmarks.deliveries import environments
from benchmarks.deliveries.environments import Receiver, ScratchEnvironment
from benchmarks.deliveries.report import Report
from benchmarks.deliveries.servers import Servers

MAX_IN_FLIGHT = 512
PER_ENDPOINT = 4


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run. `dispatchers` is the largest number of them at once."""

    parts: Sequence[str]
    quick: bool = False
    dispatchers: int = 2
    postgres: str = ""
    redis: str = ""
    endpoints: int = 64
    rounds: int = 5

    def either(self, quick: int, full: int) -> int:
        return quick if self.quick else full


@dataclass(slots=True)
class Bench:
    """What the parts work with."""

    options: Options
    report: Report
    receiver: Receiver
    folder: Path
    name: str
    say: Callable[[str], None]
    environments: list[ScratchEnvironment]
    redis: str = ""
    servers: Servers = field(default_factory=Servers)

    @property
    def sqlite(self) -> ScratchEnvironment:
        return self.environments[0]

    @property
    def postgres(self) -> ScratchEnvironment | None:
        return next(
            (scratch for scratch in self.environments if scratch.name == "PostgreSQL"),
            None,
        )

    @property
    def empty(self) -> Path:
        """Return a migrated SQLite database without rows; migrating takes seconds."""
        return self.folder / "empty.sqlite3"

    def scratch_sqlite(self, name: str) -> str:
        """Make another empty database; return its URL."""
        # A new folder: the log of an older database of this name would be read with it.
        file = Path(mkdtemp(dir=self.folder)) / f"{name}.sqlite3"
        shutil.copy(self.empty, file)
        return f"sqlite:///{file}"

    @property
    def in_flight(self) -> int:
        return min(MAX_IN_FLIGHT, PER_ENDPOINT * self.options.endpoints)

    def waits(self, path: str, deliveries: int) -> tuple[str, int, int]:
        """Return a group of deliveries to all endpoints, whose URLs have one path."""
        return self.receiver.url(path), self.options.endpoints, deliveries


@contextmanager
def scratch_environments(
    options: Options, report: Report, say: Callable[[str], None]
) -> Iterator[Bench]:
    """Create the scratch environments, and remove them at the end."""
    name = environments.scratch_name()
    with ExitStack() as stack:
        # Clean up after SIGTERM too.
        before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        stack.callback(signal.signal, signal.SIGTERM, before)
        # What was named and cannot be used ends the run before anything is started.
        database = _postgres(stack, options.postgres, report, name)
        redis = _redis(stack, options.redis, report, name)
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="bench-")))
        receiver = Receiver(folder / "receiver.log")
        stack.callback(receiver.close)
        servers = Servers.of(database, redis)
        bench = Bench(options, report, receiver, folder, name, say, [], redis, servers)
        file = folder / "bench.sqlite3"
        _scratch(bench, stack, "SQLite", f"sqlite:///{file}")
        _copy(file, bench.empty)
        if database:
            _scratch(bench, stack, "PostgreSQL", database)
        yield bench


def _copy(source: Path, target: Path) -> None:
    # Not as a file: some of it may still be in the write-ahead log.
    with (
        closing(sqlite3.connect(source)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new)


def _scratch(bench: Bench, stack: ExitStack, name: str, database: str) -> None:
    environment = environments.environment(
        database=database,
        name=bench.name,
        WEBHOOK_DISPATCHERS=str(bench.options.dispatchers),
    )
    scratch = ScratchEnvironment(name, environment, bench.folder)
    stack.callback(scratch.close)
    bench.environments.append(scratch)


def _postgres(stack: ExitStack, url: str, report: Report, name: str) -> str:
    if not url:
        report.skipped["PostgreSQL"] = "no --postgres and no such DATABASE_URL"
        return ""
    try:
        return stack.enter_context(environments.scratch_postgres(url, name))
    except (psycopg.Error, ValueError) as error:
        raise environments.unusable("--postgres", error) from error


def _redis(stack: ExitStack, url: str, report: Report, name: str) -> str:
    if not url:
        report.skipped["Redis"] = "no --redis and no REDIS_URL"
        return ""
    try:
        return stack.enter_context(environments.scratch_keys(url, name))
    except (RedisError, ValueError) as error:
        raise environments.unusable("--redis", error) from error


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)]


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"
