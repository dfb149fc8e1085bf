import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
import redis
from django.conf import settings
from django.utils import timezone
from django_q.signing import SignedPackage

from tests.running import (
    PATIENCE_S,
    Running,
    environment,
    running,
    status_field,
    until,
)

pytestmark = [
    pytest.mark.services,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


# `qcluster`, which waits for so long for a live dispatcher.
CLUSTER = """
import django
django.setup()
from webhooks_core.worker import cluster
cluster.SILENT_S, cluster.ASK_EVERY_S = {}, 1.0
cluster.Parent().run()
"""


@pytest.fixture
def database(migrated_file: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(migrated_file, tmp_path / "cluster.sqlite3"))


@pytest.fixture
def variables(database: Path) -> Iterator[dict[str, str]]:
    """The queue that a test uses: in the database or, with REDIS_URL, one of its own there."""
    own = {"DATABASE_URL": f"sqlite:///{database}"}
    if not settings.REDIS_URL:
        yield own
        return
    name = f"test-{uuid.uuid4().hex}"
    yield own | {"REDIS_URL": settings.REDIS_URL, "Q_CLUSTER_NAME": name}
    with redis.from_url(settings.REDIS_URL) as client:
        client.delete(f"django_q:{name}:q")


@pytest.fixture
def start(
    variables: dict[str, str], database: Path
) -> Iterator[Callable[..., Running]]:
    """Return a function that starts a cluster and waits until all its processes are there."""
    own = environment(
        **variables,
        WORKERS="2",
        LOG_LEVEL="INFO",
        DJANGO_SETTINGS_MODULE="config.settings",
    )
    with ExitStack() as stack:

        def start(*, silent_s: float = 45.0) -> Running:
            cluster = stack.enter_context(
                running("-c", CLUSTER.format(silent_s), environment=own)
            )
            # Shown with a failure.
            stack.callback(
                lambda: sys.stdout.write(cluster.output + states(cluster, database))
            )
            until(lambda: len(cluster.family()) == 2 + 5, "all processes")
            return cluster

        yield start


def states(cluster: Running, database: Path) -> str:
    """Return what each process waits for in the kernel, and which tasks wait for them.

    A worker that is killed while it holds a lock of a queue leaves the others in `futex_wait`.
    """
    lines = [f"exit status of the cluster: {cluster.process.poll()}"]
    for pid in cluster.family():
        with suppress(OSError):
            waits = Path(f"/proc/{pid}/wchan").read_text()
            lines.append(f"{pid} of {status_field(pid, 'PPid')}: {waits}")
    with closing(sqlite3.connect(database, timeout=PATIENCE_S)) as connection:
        rows = connection.execute("select id, key, lock from django_q_ormq")
        lines += [f"queued: {row}" for row in rows]
    return "\n".join([*lines, ""])


@pytest.fixture
def give(
    variables: dict[str, str], database: Path, tmp_path: Path
) -> Callable[..., Path]:
    """Return a function that queues a task and returns the file that the task signs."""

    def give(task: str) -> Path:
        file = tmp_path / f"{uuid.uuid4().hex}.pid"
        package = SignedPackage.dumps(
            {
                "id": uuid.uuid4().hex,
                "name": task,
                "func": f"tests.webhooks_core.worker.cluster_tasks.{task}",
                "args": (str(file),),
                "kwargs": {},
                "started": timezone.now(),
            }
        )
        if name := variables.get("Q_CLUSTER_NAME"):
            with redis.from_url(settings.REDIS_URL) as client:
                client.rpush(f"django_q:{name}:q", package)
            return file
        with (
            closing(sqlite3.connect(database, timeout=PATIENCE_S)) as connection,
            connection,
        ):
            connection.execute(
                "insert into django_q_ormq (key, payload, lock) values (?, ?, ?)",
                ("signpost", package, "2020-01-01 00:00:00"),
            )
        return file

    return give


def signed(file: Path) -> int:
    """Wait for a task to sign; return the pid of the worker that ran it."""
    until(lambda: has_signed(file), "a signature", seconds=4 * PATIENCE_S)
    return int(file.read_text())


def has_signed(file: Path) -> bool:
    return file.exists() and file.read_text() != ""


def run_a_task(give: Callable[..., Path]) -> int:
    """Give tasks until one is run; return the pid of the worker that ran it.

    A process that was just killed may have held a task. With Redis the task is lost; with the
    database it is handed out again after two minutes. In an unresponsive cluster the following
    ones do not run either.
    """
    given: list[Path] = []

    def signatures() -> list[str]:
        return [file.read_text() for file in given if has_signed(file)]

    def has_run() -> bool:
        given.append(give("sign"))
        with suppress(AssertionError):
            until(signatures, "one more signature", seconds=5)
        return bool(signatures())

    # A frozen worker counts as busy until the end of its task's time-out, 90 s.
    until(has_run, "a signature", seconds=2 * PATIENCE_S)
    return int(signatures()[0])


def live_leases(database: Path) -> list[int]:
    """Return the pids of the dispatchers whose leases have not ended."""
    with closing(sqlite3.connect(database, timeout=PATIENCE_S)) as connection:
        rows = connection.execute(
            "select pid from webhooks_core_dispatcherlease"
        ).fetchall()
    return [pid for (pid,) in rows]


def dispatcher_of(cluster: Running, database: Path) -> int:
    """Wait until a dispatcher of the cluster is live; return its pid."""
    until(
        lambda: {*live_leases(database)} & {*cluster.family()},
        "a live dispatcher",
        seconds=2 * PATIENCE_S,
    )
    return live_leases(database)[0]


def test_a_dispatcher_is_started_and_replaced_when_its_worker_dies(
    start, give, database
):
    cluster = start()
    first = dispatcher_of(cluster, database)
    assert signed(give("sign")) in cluster.family()
    os.kill(first, signal.SIGKILL)
    until(
        lambda: first not in live_leases(database),
        "the end of its lease",
        seconds=2 * PATIENCE_S,
    )
    assert dispatcher_of(cluster, database) != first
    assert cluster.end() == 0
    assert cluster.family() == []
    assert "Traceback" not in cluster.output


def test_a_cluster_without_a_live_dispatcher_is_started_again(start, database):
    """Nothing gets through a frozen pusher: a dispatcher that ends then has no successor."""
    cluster = start(silent_s=3)
    first = dispatcher_of(cluster, database)
    [main] = cluster.children()
    [sentinel] = cluster.children(main)
    *_, pusher = cluster.children(sentinel)
    os.kill(pusher, signal.SIGSTOP)
    os.kill(first, signal.SIGKILL)
    cluster.wait_for("task processes restarted")
    assert dispatcher_of(cluster, database) != first
    assert cluster.end() == 0
    assert cluster.family() == []


def test_a_worker_that_dies_is_replaced_and_none_outlives_a_killed_parent(
    start, give, database
):
    cluster = start()
    # It keeps the other worker from tasks: after a hundred of them django-q replaces that one too.
    dispatcher_of(cluster, database)
    others = set(cluster.family()) - {victim := signed(give("work_until_stopped"))}
    os.kill(victim, signal.SIGKILL)
    until(lambda: run_a_task(give) not in others, "the task of a new worker")
    assert others <= set(cluster.family())
    signed(give("work_for_ever"))
    assert cluster.end(signal.SIGKILL) == -signal.SIGKILL
    cluster.wait_until_nothing_is_left()


def test_a_second_signal_kills_a_task_that_ignores_the_first(start, give):
    cluster = start()
    signed(give("work_for_ever"))
    os.kill(cluster.pid, signal.SIGTERM)
    time.sleep(1)
    assert cluster.process.poll() is None
    assert cluster.end() == 1
    assert "tasks were cut off" in cluster.output
    cluster.wait_until_nothing_is_left()


def test_a_cluster_that_cannot_start_gives_up_with_a_clear_line(database):
    variables = environment(
        DATABASE_URL=f"sqlite:///{database}", REDIS_URL="redis://127.0.0.1:1/0"
    )
    with running("manage.py", "qcluster", environment=variables) as cluster:
        assert cluster.status() == 1
        assert (
            "CommandError: gave up after 10 s: the cluster ended with 1"
            in cluster.output
        )
        assert "Traceback" not in cluster.output


def test_a_cluster_ends_with_its_parent(database):
    variables = environment(DATABASE_URL=f"sqlite:///{database}")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    arguments = ("manage.py", "qcluster", "--exit-with-parent", str(dead.pid))
    with running(*arguments, environment=variables) as cluster:
        assert cluster.status() == -signal.SIGKILL
