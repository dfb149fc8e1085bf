"""Workers of other libraries: one process each, warm before they are measured."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.deliveries.bench import Bench
from benchmarks.deliveries.environments import (
    JobProcess,
    ScratchEnvironment,
    slug_of,
    until,
)
from benchmarks.deliveries.peers.known import Peer, able
from benchmarks.deliveries.process_tree import Worker

WARM_UP = 20
SETTLE_S = 1.0
KILLED_AFTER = 5  # a part of the deliveries
# Node and most queues find what a killed worker had within a minute, or after a fixed long time.
PATIENCE_S = 75

Measured = tuple[float, float, float]


class Runner:
    """A library's worker, the process that queues for it, and their database."""

    def __init__(
        self, bench: Bench, scratch: ScratchEnvironment, name: str, peer: Peer
    ) -> None:
        self._bench, self._scratch, self._name, self._peer = bench, scratch, name, peer
        slug = slug_of(name)
        # Each has its own queue: a stopped worker would take from a shared one.
        self._environment = scratch.environment | {"BENCH_NAME": f"{bench.name}-{slug}"}
        if peer.server == "PostgreSQL" and bench.postgres:
            database = bench.postgres.environment["DATABASE_URL"]
            self._environment["DATABASE_URL"] = database
        self._log = bench.folder / f"{slug}.log"
        self._queuer = JobProcess(self._environment, self._log) if peer.job else None
        self._count = bench.options.either(100, peer.deliveries)
        self._queue(WARM_UP, "ok")  # a worker may need the tables of its queue
        self._worker = self._start()

    def _start(self) -> Worker:
        command = self._peer.worker or (*self._peer.started(), "work")
        return Worker(command, self._environment, self._log)

    def warm(self) -> None:
        self._await(WARM_UP)
        self._halt()

    def measure(self) -> Measured:
        """Return the deliveries per second, and the CPU of each: worker's, servers'."""
        self._queue(self._count, "ok")
        self._bench.receiver.reset()
        before, at = self._cpu(), time.monotonic()
        self._worker.signal(signal.SIGCONT)
        seconds = self._await(self._count) - at
        self._halt()
        used = [now - then for now, then in zip(self._cpu(), before, strict=True)]
        return self._count / seconds, used[0] / self._count, used[1] / self._count

    def _cpu(self) -> tuple[float, float]:
        return self._worker.cpu(), self._bench.servers.cpu()

    def interrupt(self, place: int) -> int:
        """Kill the worker in mid-run, and start another one; return how many were queued."""
        count, receiver = self._count, self._bench.receiver
        self._queue(count, f"seen/20/{place}", empty=False)
        before = receiver.answered("seen")
        self._worker.signal(signal.SIGCONT)
        until(
            lambda: receiver.answered("seen") - before > count // KILLED_AFTER,
            f"a part of {self._name}",
            every_s=0.05,
        )
        self._worker.kill()
        self._worker = self._start()
        return count

    def arrived(self, place: int) -> tuple[int, int]:
        """Return how many of the interrupted deliveries arrived, and how many twice."""
        counts = self._seen(place)
        return len(counts), sum(counts) - len(counts)

    def _seen(self, place: int) -> list[int]:
        seen = self._bench.receiver.stats()["seen"]
        return [count for key, count in seen.items() if key.endswith(f" {place}")]

    def _halt(self) -> None:
        """Stop the worker, but not while it holds a lock of the database."""
        time.sleep(SETTLE_S)
        self._worker.signal(signal.SIGSTOP)

    def _queue(self, count: int, path: str, *, empty: bool = True) -> None:
        url = self._bench.receiver.url(path)
        if self._queuer is None:
            command = (*self._peer.started(), "queue", url, str(count))
            Worker(command, self._environment, self._log).wait()
        elif self._peer.keyed:
            keys = self._scratch.fill(
                self._bench.waits(path, count), due=False, empty=empty
            )
            self._queuer.do(self._peer.job, keys=keys)
        else:
            self._queuer.do(self._peer.job, url=url, count=count)

    def _await(self, count: int) -> float:
        until(lambda: self._is_done(count), f"{count} of {self._name}", every_s=0.05)
        return float(self._bench.receiver.stats("counts")["last"]["ok"])

    def _is_done(self, count: int) -> bool:
        self._worker.check()
        return self._bench.receiver.answered() >= count

    def close(self) -> None:
        self._worker.kill()
        if self._queuer:
            self._queuer.kill()


@contextmanager
def peers(bench: Bench) -> Iterator[dict[str, Runner]]:
    """Start the workers of the installed libraries, warm and stopped."""
    with ExitStack() as stack:
        scratch = _scratch(bench)
        stack.callback(scratch.close)
        runners = {}
        for name, peer in able(bench):
            bench.receiver.reset()
            runners[name] = Runner(bench, scratch, name, peer)
            stack.callback(runners[name].close)
            runners[name].warm()
        yield runners


def interrupted(bench: Bench, runners: dict[str, Runner]) -> dict[str, dict[str, int]]:
    """Kill each worker in mid-run; return what had arrived a while after the restarts."""
    bench.receiver.reset()
    queued = {}
    for place, (name, runner) in enumerate(runners.items()):
        queued[name] = runner.interrupt(place)
        bench.say(f"{name}: killed and started again")
    time.sleep(bench.options.either(2, PATIENCE_S))
    counts = {}
    for place, (name, runner) in enumerate(runners.items()):
        arrived, twice = runner.arrived(place)
        counts[name] = {
            "published": queued[name],
            "delivered": arrived,
            "twice": twice,
            "lost": queued[name] - arrived,
        }
    return counts


def _scratch(bench: Bench) -> ScratchEnvironment:
    """Make a database for the peers: SQLite, the quicker one for a single process."""
    environment = bench.sqlite.environment | {
        "DATABASE_URL": bench.scratch_sqlite("peers"),
        "REDIS_URL": bench.redis,
        "WORKERS": "1",
        "BENCH_PEERS": "yes",
    }
    return ScratchEnvironment("peers", environment, bench.folder)
