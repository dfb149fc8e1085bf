"""Workers of other libraries: one process each, warm before they are measured."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import NamedTuple

from benchmarks.deliveries.bench import Bench
from benchmarks.deliveries.environments import JobProcess, ScratchEnvironment, until
from benchmarks.deliveries.process_tree import Worker

WARM_UP = 20
SETTLE_S = 1.0


class Peer(NamedTuple):
    """How to queue for a library and how to run its worker.

    `keyed` says that its jobs take the keys of deliveries; the others take a url and a count.
    """

    library: str
    job: str
    command: tuple[str, ...]
    keyed: bool
    needs_redis: bool = True


_CELERY = (
    "celery",
    "-A",
    "benchmarks.deliveries.peers.celery_app",
    "worker",
    "-l",
    "ERROR",
)
_QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
_ONE = (*_CELERY, *_QUIET, "-c", "1")
_THREADS = (*_CELERY, *_QUIET, "--pool", "threads", "-c", "16")
_DRAMATIQ = (
    "dramatiq",
    "benchmarks.deliveries.peers.dramatiq_app",
    "-p",
    "1",
    "-t",
    "8",
)
_QCLUSTER = ("manage.py", "qcluster", "--unresponsive-after", "100000")

RECORDED = {
    "django-q2": Peer("django_q", "queue_django_q", _QCLUSTER, True, False),
    "Celery": Peer("celery", "queue_celery", _ONE, True),
    "Celery, 16 threads": Peer("celery", "queue_celery", _THREADS, True),
    "dramatiq, 8 threads": Peer("dramatiq", "queue_dramatiq", _DRAMATIQ, True),
    "django-webhook": Peer("django_webhook", "queue_django_webhook", _ONE, False),
}
POSTED = {
    "django-q2, posts alone": Peer(
        "django_q", "queue_django_q_posts", _QCLUSTER, False, False
    ),
    "Celery, posts alone": Peer("celery", "queue_celery_posts", _ONE, False),
    "dramatiq, posts alone": Peer("dramatiq", "queue_dramatiq_posts", _DRAMATIQ, False),
}


Measured = tuple[float, float]


class Runner:
    """A library's worker, the process that queues for it, and their database."""

    def __init__(
        self, bench: Bench, scratch: ScratchEnvironment, name: str, peer: Peer
    ) -> None:
        self._bench, self._scratch, self._name, self._peer = bench, scratch, name, peer
        slug = "".join(
            character if character.isalnum() else "-" for character in name.lower()
        )
        # Each has its own queue: a stopped worker would take from a shared one.
        environment = scratch.environment | {"BENCH_NAME": f"{bench.name}-{slug}"}
        log = bench.folder / f"{slug}.log"
        self._queuer = JobProcess(environment, log)
        self._worker = Worker(peer.command, environment, log)
        self._count = bench.options.either(100, 1_000)

    def warm(self) -> None:
        self._bench.receiver.reset()
        self._queue(WARM_UP)
        self._await(WARM_UP)
        self._halt()

    def measure(self) -> Measured:
        """Return the deliveries per second, and the CPU of each."""
        self._queue(self._count)
        self._bench.receiver.reset()
        cpu, at = self._worker.cpu(), time.monotonic()
        self._worker.signal(signal.SIGCONT)
        seconds = self._await(self._count) - at
        self._halt()
        used = self._worker.cpu() - cpu
        return self._count / seconds, used / self._count

    def _halt(self) -> None:
        """Stop the worker, but not while it holds a lock of the database."""
        time.sleep(SETTLE_S)
        self._worker.signal(signal.SIGSTOP)

    def _queue(self, count: int) -> None:
        if self._peer.keyed:
            keys = self._scratch.fill(self._bench.waits("ok", count))
            self._queuer.do(self._peer.job, keys=keys)
        else:
            url = self._bench.receiver.url()
            self._queuer.do(self._peer.job, url=url, count=count)

    def _await(self, count: int) -> float:
        until(lambda: self._is_done(count), f"{count} of {self._name}", every_s=0.05)
        return float(self._bench.receiver.stats()["last"]["ok"])

    def _is_done(self, count: int) -> bool:
        self._worker.check()
        return self._bench.receiver.answered() >= count

    def close(self) -> None:
        self._worker.kill()
        self._queuer.kill()


@contextmanager
def peers(bench: Bench) -> Iterator[dict[str, Callable[[], Measured]]]:
    """Start the workers of the installed libraries; yield a function for each that measures it."""
    wanted = RECORDED if bench.options.quick else RECORDED | POSTED
    with ExitStack() as stack:
        scratch = _scratch(bench)
        stack.callback(scratch.close)
        runners = {}
        for name, peer in wanted.items():
            if not _is_able(bench, name, peer):
                continue
            runners[name] = Runner(bench, scratch, name, peer)
            stack.callback(runners[name].close)
            runners[name].warm()
        yield {name: runner.measure for name, runner in runners.items()}


def _is_able(bench: Bench, name: str, peer: Peer) -> bool:
    if find_spec(peer.library) is None:
        bench.report.skipped[name] = f"{peer.library} is not installed"
    elif peer.needs_redis and not bench.redis:
        bench.report.skipped[name] = "no Redis"
    return name not in bench.report.skipped


def _scratch(bench: Bench) -> ScratchEnvironment:
    """Make a database for the peers: SQLite, the quicker one for a single process."""
    environment = bench.sqlite.environment | {
        "DATABASE_URL": bench.scratch_sqlite("peers"),
        "REDIS_URL": bench.redis,
        "WORKERS": "1",
        "BENCH_PEERS": "yes",
    }
    return ScratchEnvironment("peers", environment, bench.folder)
