from __future__ import annotations

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
    until,
)

pytestmark = [
    pytest.mark.services,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


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
def start(variables: dict[str, str]) -> Iterator[Callable[..., Running]]:
    """Return a function that starts a cluster and waits until all its processes are there."""
    with ExitStack() as stack:

        def start(*options: str, workers: int = 2) -> Running:
            cluster = stack.enter_context(
                running(
                    "manage.py",
                    "qcluster",
                    "--skip-checks",
                    *options,
                    environment=environment(**variables, WORKERS=str(workers)),
                )
            )
            # Shown with a failure.
            stack.callback(lambda: sys.stdout.write(cluster.output))
            until(lambda: len(cluster.family()) == workers + 5, "all processes")
            return cluster

        yield start


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
                "func": f"tests.cluster_tasks.{task}",
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
    until(lambda: has_signed(file), "a signature")
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


def is_acknowledged(database: Path, file: Path) -> bool:
    """Return True if the task that signs a file has left the queue."""
    with closing(sqlite3.connect(database, timeout=PATIENCE_S)) as connection:
        payloads = connection.execute("select payload from django_q_ormq").fetchall()
    tasks = [SignedPackage.loads(payload) for (payload,) in payloads]
    return all(task["args"] != (str(file),) for task in tasks)


PARTS = ("main process", "sentinel", "workers", "monitor", "pusher")


def parts_of(cluster: Running) -> list[list[int]]:
    """Return the pids of each part."""
    [main] = cluster.children()
    [sentinel] = cluster.children(main)
    *workers, monitor, pusher = cluster.children(sentinel)
    return [[main], [sentinel], workers, [monitor], [pusher]]


def send_while_it_waits(number: int, pid: int) -> None:
    """Send a signal to a process that sleeps.

    One that ends in the middle of a message leaves the rest of it in the queue, where the next
    worker takes it for a message. No task gets through until the cluster is restarted.
    """
    until(lambda: is_asleep(pid), "a process to wait")
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def is_asleep(pid: int) -> bool:
    """Return True if the main thread waits, or the process is gone."""
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "S"
    return True


def test_a_suspended_an_idle_and_a_busy_cluster_are_not_unresponsive(start, give):
    cluster = start("--unresponsive-after", "6", workers=3)  # one runs the dispatcher
    before = set(cluster.family())
    assert signed(give("sign")) in before
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in before:
            os.kill(pid, number)
        time.sleep(7)
    assert signed(give("sign")) in before
    assert set(cluster.family()) == before

    files = [give("work_until_stopped"), give("work_until_stopped")]
    workers = {signed(file) for file in files}
    time.sleep(7)
    assert workers <= set(cluster.family()) == before
    assert cluster.end() == 0
    assert all(file.with_suffix(".stopped").exists() for file in files)
    assert cluster.family() == []
    assert "Traceback" not in cluster.output


RESTARTED = "task processes restarted"
WORKERS, PUSHER = PARTS.index("workers"), PARTS.index("pusher")


def attack(cluster: Running, part: int, number: int) -> set[int]:
    """Kill or freeze a part of the cluster and wait for its replacement; return its old pids."""
    restarts, victims = cluster.output.count(RESTARTED), set(parts_of(cluster)[part])
    for pid in victims:
        send_while_it_waits(number, pid)
    if part == WORKERS:
        return victims
    until(lambda: not victims & set(cluster.family()), f"the end: {PARTS[part]}")
    # A killed pusher is replaced by django-q2.
    if (part, number) != (PUSHER, signal.SIGKILL):
        until(lambda: cluster.output.count(RESTARTED) > restarts, "a restart")
    return victims


def wait_for_a_new_worker(
    cluster: Running, give: Callable[..., Path], victims: set[int]
) -> None:
    until(
        lambda: run_a_task(give) in set(cluster.family()) - victims,
        "a task of a new worker",
        seconds=2 * PATIENCE_S,
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_tasks_run_again_after_each_part_of_the_cluster_was_killed_or_frozen(
    start, give, number
):
    cluster = start("--unresponsive-after", "5")
    assert run_a_task(give) in cluster.family()
    # The workers last: it is not sure whether they alone are replaced, or the cluster is restarted.
    for part in sorted(range(len(PARTS)), key=WORKERS.__eq__):
        victims = attack(cluster, part, number)
        wait_for_a_new_worker(cluster, give, victims)
    # A frozen worker that django-q2 replaced keeps its SIGTERM until it goes on.
    for pid in victims & set(cluster.family()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    assert cluster.end() == 0
    assert cluster.family() == []


def test_a_worker_that_dies_is_replaced_and_none_outlives_a_killed_parent(start, give):
    cluster = start()
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
    obedient = give("work_until_stopped")
    signed(obedient)
    os.kill(cluster.pid, signal.SIGTERM)
    until(obedient.with_suffix(".stopped").exists, "the first signal")
    assert cluster.end() == 1
    assert "tasks were cut off" in cluster.output
    cluster.wait_until_nothing_is_left()


def test_a_cluster_that_cannot_start_gives_up_with_a_clear_line(database):
    variables = environment(
        DATABASE_URL=f"sqlite:///{database}", REDIS_URL="redis://127.0.0.1:1/0"
    )
    with running("manage.py", "qcluster", environment=variables) as cluster:
        assert cluster.status() == 1
        assert "CommandError: gave up after 4 starts" in cluster.output
        assert "Traceback" not in cluster.output


def test_run_once_runs_the_waiting_tasks_and_ends(variables, give):
    file, own = give("sign"), environment(**variables)
    with running("manage.py", "qcluster", "--run-once", environment=own) as cluster:
        assert cluster.status() == 0
        signed(file)


def test_a_cluster_ends_with_its_parent(database):
    variables = environment(DATABASE_URL=f"sqlite:///{database}")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    arguments = ("manage.py", "qcluster", "--exit-with-parent", str(dead.pid))
    with running(*arguments, environment=variables) as cluster:
        assert cluster.status() == -signal.SIGKILL


def test_half_a_message_in_the_result_queue_is_repaired_by_a_restart(
    start, give, variables, database
):
    """What was taken is lost with Redis, or handed out again: it is a hint, so no event is lost."""
    cluster = start("--unresponsive-after", "5")
    signed(give("die_within_a_message"))
    cluster.wait_for("no task was run for 5 s")
    if "REDIS_URL" in variables:
        assert run_a_task(give) in cluster.family()
        return
    last = give("sign")
    until(lambda: is_acknowledged(database, last), "an acknowledgement")
