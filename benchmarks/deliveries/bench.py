"""One run of the deliveries benchmark: its options, and the environments that its parts work with."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.deliveries import environments
from benchmarks.deliveries.environments import Receiver, ScratchEnvironment
from benchmarks.machine import BenchError


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run."""

    parts: Sequence[str]
    quick: bool
    rounds: int
    postgres: str
    redis: str

    def either(self, quick: int, full: int) -> int:
        return quick if self.quick else full


@dataclass(slots=True)
class Bench:
    """What the parts work with, and the figures so far: by title, row and column."""

    options: Options
    receiver: Receiver
    folder: Path
    name: str
    say: Callable[[str], None]
    environments: list[ScratchEnvironment]
    redis: str
    tables: dict[str, dict[str, dict[str, float | str]]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def sqlite(self) -> ScratchEnvironment:
        return self.environments[0]

    @property
    def postgres(self) -> ScratchEnvironment | None:
        return self.environments[1] if len(self.environments) > 1 else None


@contextmanager
def scratch_environments(
    options: Options, say: Callable[[str], None]
) -> Iterator[Bench]:
    """Create the scratch environments, and remove them at the end."""
    name = environments.scratch_name()
    with ExitStack() as stack:
        # Clean up after SIGTERM too.
        before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        stack.callback(signal.signal, signal.SIGTERM, before)
        database = ""
        # A server that cannot be used ends the run before anything is started.
        try:
            if options.postgres:
                made = environments.scratch_postgres(options.postgres, name)
                database = stack.enter_context(made)
            if options.redis:
                stack.enter_context(environments.scratch_keys(options.redis, name))
        except Exception as error:
            raise BenchError("DATABASE_URL or REDIS_URL is not usable") from error
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="bench-")))
        receiver = Receiver(folder / "receiver.log")
        stack.callback(receiver.close)
        bench = Bench(options, receiver, folder, name, say, [], options.redis)
        urls = {
            "SQLite": f"sqlite:///{folder / 'bench.sqlite3'}",
            "PostgreSQL": database,
        }
        for vendor, url in urls.items():
            if not url:
                bench.skipped[vendor] = "no such DATABASE_URL"
                continue
            variables = environments.environment(
                database=url, name=name, WEBHOOK_DISPATCHERS="2"
            )
            scratch = ScratchEnvironment(vendor, variables, folder)
            stack.callback(scratch.close)
            bench.environments.append(scratch)
        yield bench
