"""Workers of other libraries: one process each, warm before they are measured."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import NamedTuple

from benchmarks import node
from benchmarks.deliveries.bench import Bench
from benchmarks.machine import Program, slug_of, until

WARM_UP = 20
SETTLE_S = 1.0
PYTHON = "benchmarks.deliveries.peers."
CELERY = "celery_gevent"


class Peer(NamedTuple):
    """A script that queues and, unless it is Celery's, works; so many deliveries take seconds."""

    package: str
    program: str
    server: str
    deliveries: int

    def command(self, *arguments: str) -> tuple[str, ...]:
        """Return the command of an action."""
        if self.program.endswith(".mjs"):
            return (*node.command(self.program), *arguments)
        python = (sys.executable, "-m")
        if arguments == ("work",):
            quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
            pool = ("--pool", "gevent", "-c", "256", "-l", "ERROR")
            return (
                *python,
                "celery",
                "-A",
                PYTHON + self.program,
                "worker",
                *quiet,
                *pool,
            )
        return (*python, PYTHON + self.program, *arguments)

    def lack(self, bench: Bench) -> str:
        """Return why it cannot be measured here, empty if it can."""
        is_node = self.program.endswith(".mjs")
        if not (node.has(self.package) if is_node else find_spec(self.package)):
            return f"{self.package} is not installed"
        servers = {"Redis": bench.redis, "PostgreSQL": bench.postgres}
        return "" if servers[self.server] else f"no {self.server}"


PEERS = {
    "Celery, gevent": Peer("celery", CELERY, "Redis", 2_000),
    "BullMQ + undici": Peer("bullmq", "bullmq.mjs", "Redis", 20_000),
    "graphile-worker + undici": Peer(
        "graphile-worker", "graphile.mjs", "PostgreSQL", 20_000
    ),
    "pg-boss + undici": Peer("pg-boss", "pgboss.mjs", "PostgreSQL", 20_000),
}


class Runner:
    """A library's worker, stopped while it is not measured."""

    def __init__(self, bench: Bench, name: str, peer: Peer) -> None:
        self._bench, self._name, self._peer = bench, name, peer
        slug = slug_of(name)
        # Each has its own queue: a stopped worker would take from a shared one.
        names = {"BENCH_NAME": f"{bench.name}-{slug}", "REDIS_URL": bench.redis}
        scratch = bench.postgres or bench.sqlite
        self._environment = scratch.environment | names
        self._log = bench.folder / f"{slug}.log"
        self._count = bench.options.either(100, peer.deliveries)
        bench.receiver.stats("reset")
        self._queue(WARM_UP)  # a worker may need the tables of its queue
        self._worker = Program(peer.command("work"), self._environment, self._log)
        self._await(WARM_UP)
        self._halt()

    def measure(self) -> tuple[float, float]:
        """Return the deliveries per second, and the worker's seconds of CPU for each."""
        self._queue(self._count)
        self._bench.receiver.stats("reset")
        before, at = self._worker.cpu(), time.monotonic()
        self._worker.signal(signal.SIGCONT)
        seconds = self._await(self._count) - at
        self._halt()
        return self._count / seconds, (self._worker.cpu() - before) / self._count

    def _halt(self) -> None:
        """Stop the worker, but not while it holds a lock of the database."""
        time.sleep(SETTLE_S)
        self._worker.signal(signal.SIGSTOP)

    def _queue(self, count: int) -> None:
        url = self._bench.receiver.url("ok")
        command = self._peer.command("queue", url, str(count))
        Program(command, self._environment, self._log).wait()

    def _await(self, count: int) -> float:
        until(lambda: self._is_done(count), f"{count} of {self._name}", every_s=0.05)
        return float(self._bench.receiver.stats("counts")["last"]["ok"])

    def _is_done(self, count: int) -> bool:
        self._worker.check()
        return self._bench.receiver.answered() >= count

    def close(self) -> None:
        self._worker.kill()


@contextmanager
def peers(bench: Bench) -> Iterator[dict[str, Runner]]:
    """Start the workers of the installed libraries; the report says why others are left out."""
    with ExitStack() as stack:
        runners = {}
        for name, peer in PEERS.items():
            if lack := peer.lack(bench):
                bench.skipped[name] = lack
                continue
            runners[name] = Runner(bench, name, peer)
            stack.callback(runners[name].close)
        yield runners
