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
        with closing(sqlite3.connect(database, timeout=20)) as connection, connection:
            connection.execute(
                "insert into django_q_ormq (key, payload, lock) values (?, ?, ?)",
                ("signpost", package, "2020-01-01 00:00:00"),
            )
        return file

    return give


def signed(file: Path) -> int:
    """Wait for a task to sign; return the pid of the worker that ran it."""
    until(lambda: file.exists() and file.read_text(), "a signature")
    return int(file.read_text())


def sentinel_of(cluster: Running) -> int:
    return cluster.children()[0]


def test_a_task_is_run(start, give):
    cluster = start()
    assert signed(give("sign")) in cluster.family()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_running_task_sees_the_request_to_stop_and_no_process_is_left(
    start, give, number
):
    cluster = start()
    file = give("work_until_stopped")
    signed(file)
    assert cluster.end(number) == 0
    assert file.with_suffix(".stopped").exists()
    assert cluster.family() == []
    assert "Traceback" not in cluster.output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_every_process_at_once_still_lets_the_task_end(start, give, number):
    cluster = start()
    file = give("work_until_stopped")
    signed(file)
    os.killpg(cluster.pid, number)
    assert cluster.status() == 0
    assert file.with_suffix(".stopped").exists()
    assert cluster.family() == []


def test_a_second_signal_kills_a_task_that_ignores_the_first(start, give):
    cluster = start()
    signed(give("work_for_ever"))
    os.kill(cluster.pid, signal.SIGTERM)
    until(lambda: len(cluster.family()) < 6, "the idle ones to leave")
    assert cluster.end() == 1
    assert "tasks were cut off" in cluster.output
    cluster.wait_until_nothing_is_left()


def test_no_process_outlives_a_killed_parent(start, give):
    cluster = start()
    signed(give("work_for_ever"))
    assert cluster.end(signal.SIGKILL) == -signal.SIGKILL
    cluster.wait_until_nothing_is_left()


def test_a_killed_sentinel_is_replaced_with_its_children(start, give):
    cluster = start()
    signed(give("work_for_ever"))
    before = set(cluster.family()) - {cluster.pid}
    os.kill(sentinel_of(cluster), signal.SIGKILL)
    until(lambda: not before & set(cluster.family()), "the old processes to die")
    run_a_task(give)
    assert signed(give("sign")) in cluster.family()
    assert "the sentinel ended with -9" in cluster.output
    assert cluster.end() == 0


def test_after_any_idle_process_is_killed_tasks_still_run(start, give):
    cluster = start()
    for victim in cluster.children(sentinel_of(cluster)):
        with suppress(ProcessLookupError):  # slowly: the guard may have been first
            os.kill(victim, signal.SIGKILL)
        run_a_task(give)
        assert signed(give("sign")) in cluster.family()
    assert cluster.end() == 0, cluster.output
    assert cluster.family() == []


def run_a_task(give: Callable[..., Path]) -> None:
    """Give tasks until one is run.

    Redis may give a task to a pusher that has just been killed: that task is lost. In an
    unresponsive cluster the following ones do not run either.
    """
    given: list[Path] = []

    def has_run() -> bool:
        given.append(give("sign"))
        end = time.monotonic() + 5
        while time.monotonic() < end:
            if any(file.exists() and file.read_text() for file in given):
                return True
            time.sleep(0.05)
        return False

    until(has_run, "a signature")


def test_a_killed_busy_worker_is_replaced_and_the_others_continue(start, give):
    cluster = start()  # the other worker runs the resident dispatcher
    os.kill(signed(give("work_for_ever")), signal.SIGKILL)
    assert signed(give("sign")) in cluster.family()


def test_a_cluster_is_restarted_if_no_task_gets_through(start, give):
    cluster = start("--unresponsive-after", "2")
    for process in cluster.children(sentinel_of(cluster)):
        os.kill(process, signal.SIGSTOP)
    cluster.wait_for("no task was run for 2 s")
    assert signed(give("sign")) in cluster.family()
    assert cluster.end() == 0


def test_frozen_processes_are_replaced_and_the_others_continue(start, give):
    cluster = start("--unresponsive-after", "16")
    parts = cluster.children(sentinel_of(cluster))
    worker, other, monitor, pusher = parts
    for pid in (frozen := {worker, monitor, pusher}):
        os.kill(pid, signal.SIGSTOP)
    until(lambda: not frozen & set(cluster.family()), "their end")
    assert cluster.output.count("frozen task process killed") == len(frozen)
    assert signed(give("sign")) in cluster.family()
    assert "no task was run" not in cluster.output
    assert other in cluster.family()
    assert cluster.end() == 0


def test_a_frozen_sentinel_is_killed_and_replaced(start, give):
    cluster = start("--unresponsive-after", "16")
    os.kill(sentinel_of(cluster), signal.SIGSTOP)
    cluster.wait_for("the sentinel is frozen")
    run_a_task(give)
    assert signed(give("sign")) in cluster.family()
    assert cluster.end() == 0


def test_a_cluster_with_long_tasks_in_all_workers_is_not_unresponsive(start, give):
    cluster = start("--unresponsive-after", "6", workers=3)  # one runs the dispatcher
    files = [give("work_until_stopped"), give("work_until_stopped")]
    workers = {signed(file) for file in files}
    before = set(cluster.family())
    time.sleep(10)
    assert workers <= set(cluster.family()) == before
    assert cluster.end() == 0


def test_a_suspended_machine_is_not_unresponsive(start, give):
    cluster = start("--unresponsive-after", "6")
    before = set(cluster.family())
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in before:
            os.kill(pid, number)
        time.sleep(7)
    assert signed(give("sign")) in before
    assert set(cluster.family()) == before
    assert cluster.end() == 0


def test_an_idle_cluster_is_not_unresponsive(start, give):
    cluster = start("--unresponsive-after", "6")
    before = set(cluster.family())
    time.sleep(10)
    assert signed(give("sign")) in before
    assert set(cluster.family()) == before
    assert cluster.end() == 0


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


def test_only_the_first_process_of_a_cluster_handles_signals_of_a_terminal(start, give):
    cluster = start()
    before = set(cluster.family())
    for pid in before - {cluster.pid}:
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
    for _ in range(2):
        assert signed(give("sign")) in before
    assert set(cluster.family()) == before
