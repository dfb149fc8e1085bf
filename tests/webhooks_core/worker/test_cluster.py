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
                    *options,
                    environment=environment(**variables, WORKERS=str(workers)),
                )
            )
            # Shown with a failure.
            stack.callback(lambda: sys.stdout.write(cluster.output))
            until(lambda: len(cluster.family()) == workers + 4, "all processes")
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

    until(has_run, "a signature")
    return int(signatures()[0])


def is_acknowledged(database: Path, file: Path) -> bool:
    """Return True if the task that signs a file has left the queue."""
    with closing(sqlite3.connect(database, timeout=PATIENCE_S)) as connection:
        payloads = connection.execute("select payload from django_q_ormq").fetchall()
    tasks = [SignedPackage.loads(payload) for (payload,) in payloads]
    return all(task["args"] != (str(file),) for task in tasks)


def sentinel_of(cluster: Running) -> int:
    return cluster.children()[0]


def send_while_it_waits(number: int, pid: int) -> None:
    """Send a signal to a process that sleeps.

    One that ends in the middle of a message leaves the rest of it in the queue, where the next
    worker takes it for a message. No task gets through until the cluster is restarted.
    """
    until(lambda: is_asleep(pid), "a process to wait")
    os.kill(pid, number)


def is_asleep(pid: int) -> bool:
    """Return True if the main thread waits, or the process is gone."""
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "S"
    return True


def assert_all_end_with_the_running_task(
    cluster: Running, give: Callable[..., Path], number: int
) -> None:
    """Send a signal to every process: the task sees the request to stop, no process is left."""
    file = give("work_until_stopped")
    signed(file)
    before = len(cluster.output)
    os.killpg(cluster.pid, number)
    assert cluster.status() == 0
    assert file.with_suffix(".stopped").exists()
    assert cluster.family() == []
    assert "Traceback" not in cluster.output[before:]


def test_a_suspended_an_idle_and_a_busy_cluster_are_not_unresponsive(start, give):
    """Nor does any process but the first one handle the signals of a terminal."""
    cluster = start("--unresponsive-after", "6", workers=3)  # one runs the dispatcher
    before = set(cluster.family())
    assert signed(give("sign")) in before
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in before:
            os.kill(pid, number)
        time.sleep(7)
    assert signed(give("sign")) in before
    assert set(cluster.family()) == before

    for pid in before - {cluster.pid}:
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
    for _ in range(2):
        assert signed(give("sign")) in before

    files = [give("work_until_stopped"), give("work_until_stopped")]
    workers = {signed(file) for file in files}
    time.sleep(7)
    assert workers <= set(cluster.family()) == before
    assert cluster.end() == 0
    assert all(file.with_suffix(".stopped").exists() for file in files)
    assert cluster.family() == []
    assert "Traceback" not in cluster.output


def test_tasks_still_run_after_any_process_but_the_first_is_killed(start, give):
    """First idle ones, then a worker with a task, then the sentinel. At the end every process gets SIGTERM at once."""
    cluster = start()
    for victim in cluster.children(sentinel_of(cluster)):
        with suppress(ProcessLookupError):  # slowly: the guard may have been first
            send_while_it_waits(signal.SIGKILL, victim)
        assert run_a_task(give) in cluster.family()

    os.kill(signed(give("work_until_stopped")), signal.SIGKILL)
    assert run_a_task(give) in cluster.family()

    signed(give("work_until_stopped"))
    before = set(cluster.family()) - {cluster.pid}
    os.kill(sentinel_of(cluster), signal.SIGKILL)
    until(lambda: not before & set(cluster.family()), "the old processes to die")
    assert run_a_task(give) in cluster.family()
    assert "the sentinel ended with -9" in cluster.output

    assert_all_end_with_the_running_task(cluster, give, signal.SIGTERM)


def test_frozen_processes_are_replaced_and_the_others_continue(start, give):
    """First the processes of tasks, then the sentinel. At the end every process gets SIGINT at once."""
    cluster = start("--unresponsive-after", "16")
    run_a_task(give)
    parts = cluster.children(sentinel_of(cluster))
    worker, other, monitor, pusher = parts
    frozen = {worker, monitor, pusher}
    for pid in frozen:
        send_while_it_waits(signal.SIGSTOP, pid)
    until(lambda: not frozen & set(cluster.family()), "their end")
    assert run_a_task(give) in cluster.family()
    assert cluster.output.count("frozen task process killed") == len(frozen)
    assert "no task was run" not in cluster.output
    assert other in cluster.family()

    os.kill(sentinel_of(cluster), signal.SIGSTOP)
    cluster.wait_for("the sentinel is frozen")
    assert run_a_task(give) in cluster.family()
    assert_all_end_with_the_running_task(cluster, give, signal.SIGINT)


def test_a_cluster_is_restarted_if_no_task_gets_through(start, give):
    cluster = start("--unresponsive-after", "2")
    for process in cluster.children(sentinel_of(cluster)):
        os.kill(process, signal.SIGSTOP)
    cluster.wait_for("no task was run for 2 s")
    assert run_a_task(give)


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


def test_no_process_outlives_a_killed_parent(start, give):
    cluster = start()
    signed(give("work_for_ever"))
    assert cluster.end(signal.SIGKILL) == -signal.SIGKILL
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


@pytest.mark.skipif("settings.REDIS_URL", reason="Redis hands a task out once")
def test_half_a_message_in_the_result_queue_keeps_acknowledgements_back_until_a_restart(
    start, give, database
):
    """Tasks still run, and are handed out again: they are hints, so no event is lost.

    What is missing: nothing in the cluster notices it. Each task runs again and again, until an
    operator restarts the cluster.
    """
    cluster = start()
    first = give("sign")
    until(lambda: is_acknowledged(database, first), "an acknowledgement")

    signed(give("die_within_a_message"))
    held = give("sign")
    assert signed(held) in cluster.family()
    cluster.clean_up()

    start()
    last = give("sign")
    until(lambda: is_acknowledged(database, last), "an acknowledgement")
    assert not is_acknowledged(database, held)
