from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import pytest
import requests

from tests.running import Running, environment, free_port, running, status_field, until
from webhooks_core.receiving.receiver import Receiver

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


@dataclass(frozen=True)
class Instance:
    process: Running
    data: Path
    url: str

    def demo(self, *options: str):
        variables = environment(DATABASE_URL=f"sqlite:///{self.data}")
        arguments = ("manage.py", "demo", "--url", self.url, *options)
        return running(*arguments, environment=variables)

    def count(self, table: str) -> int:
        with closing(sqlite3.connect(self.data)) as connection:
            found = connection.execute(f"select count(*) from {table}")  # noqa: S608
            return int(found.fetchone()[0])

    def retries(self) -> list[datetime]:
        """Return when deliveries that failed once are due again."""
        with closing(sqlite3.connect(self.data)) as connection:
            found = connection.execute(
                "select next_attempt_at from webhooks_core_delivery"
                " where attempts = 1 and status = 0 and claimed_by is null"
            )
            return [datetime.fromisoformat(f"{due}+00:00") for (due,) in found]

    def hurry(self) -> None:
        """Make due now what waits for its minute."""
        now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}"
        with closing(sqlite3.connect(self.data, timeout=20)) as connection, connection:
            connection.execute(
                "update webhooks_core_delivery set next_attempt_at = ? where status = 0",
                (now,),
            )
            connection.execute(
                "update webhooks_core_endpointqueue set next_due_at = ?", (now,)
            )

    @property
    def token(self) -> str:
        found = re.search(r"rec_pat_\w+", self.process.output)
        assert found
        return found.group()


def started(data: Path, *options: str) -> Iterator[Instance]:
    """Start an instance on a file of data, which may be an earlier instance's."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    arguments = ("manage.py", "up", "--port", str(port), *options)
    variables = environment(DATABASE_URL=f"sqlite:///{data}", BASE_URL=url)
    with running(*arguments, environment=variables) as process:
        process.wait_for("Signpost is ready")
        yield Instance(process, data, url)


@pytest.fixture(scope="module")
def instance(tmp_path_factory, migrated_file) -> Iterator[Instance]:
    folder = tmp_path_factory.mktemp("demo")
    yield from started(shutil.copy(migrated_file, folder / "demo.sqlite3"))


@pytest.fixture(scope="module")
def without_worker(tmp_path_factory, migrated_file) -> Iterator[Instance]:
    folder = tmp_path_factory.mktemp("demo")
    data = shutil.copy(migrated_file, folder / "demo.sqlite3")
    yield from started(data, "--no-worker")


@pytest.fixture
def data(migrated_file, tmp_path) -> Path:
    return Path(shutil.copy(migrated_file, tmp_path / "demo.sqlite3"))


def test_the_signed_event_arrives_and_is_told_as_delivered(instance):
    with instance.demo() as it:
        assert it.status() == 0, it.output
        assert "✔ summary.completed arrives, and its signature holds" in it.output
        assert "status     1 (delivered)" in it.output
        assert "✔ A chat answer streams" in it.output
        assert "✔ ingest.completed arrives, and its signature holds" in it.output
        assert it.lines[-1] == "All of it works.\n"


def test_a_failed_attempt_is_followed_by_a_real_retry_a_minute_later(instance):
    with instance.demo("--failing") as it:
        it.wait_for("status     0 (pending)")
        [due] = instance.retries()
        assert 50 < due.timestamp() - time.time() < 67
        instance.hurry()
        assert it.status() == 0, it.output
        assert "last error HTTP 500" in it.output
        assert "attempts   2" in it.output


def test_nothing_of_a_demonstration_stays(instance):
    tables = (
        "recording_personaltoken",
        "recording_recording",
        "gateway_gatewaykey",
        "gateway_document",
        "catalog_book",
        "catalog_author",
    )
    before = [instance.count(table) for table in tables]
    with instance.demo() as it:
        assert it.status() == 0
    assert [instance.count(table) for table in tables] == before
    headers = {"Authorization": f"Bearer {instance.token}"}
    answer = requests.get(instance.url + "/v1/webhooks", headers=headers, timeout=20)
    assert answer.json() == {"items": []}


def test_a_worker_that_is_not_there_is_named(without_worker):
    with without_worker.demo("--timeout", "1") as it:
        assert it.status() == 1
        assert "✘ summary.completed arrives" in it.output
        assert "is the task cluster running (`manage.py qcluster`)" in it.output
        assert "Traceback" not in it.output


def test_another_database_than_the_instances_is_told(without_worker, instance):
    mixed = Instance(instance.process, without_worker.data, instance.url)
    with mixed.demo() as it:
        assert it.status() == 1
        assert "POST /v1/webhooks answered 401" in it.output
        assert "Traceback" not in it.output


def test_an_instance_that_does_not_run_is_told(instance):
    nobody = Instance(
        instance.process, instance.data, f"http://127.0.0.1:{free_port()}"
    )
    with nobody.demo() as it:
        assert it.status() == 1
        assert "nothing answers at" in it.output
        assert "`make run`" in it.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--user", "nobody"), "there is no user 'nobody' in this database"),
        (("--url", "127.0.0.1:8000"), "--url: Not an http or https origin."),
        (("--timeout", "soon"), "argument --timeout"),
    ],
)
def test_a_wrong_option_is_told(instance, options, words):
    with instance.demo(*options) as it:
        assert it.status() != 0
        assert words in it.output
        assert "Traceback" not in it.output


def test_a_database_without_tables_is_told(instance, tmp_path):
    empty = Instance(instance.process, tmp_path / "empty.sqlite3", instance.url)
    with empty.demo() as it:
        assert it.status() == 1
        assert "empty.sqlite3 is not usable: no such table" in it.output
        assert "Traceback" not in it.output


class Hook:
    """A receiver in a thread of the test."""

    def __init__(self, *statuses: int, delay_s: float = 0) -> None:
        self.event_ids: list[str] = []
        self.server = Receiver(
            "127.0.0.1",
            0,
            on_request=lambda received, _: self.event_ids.append(received.event_id),
            statuses=statuses,
            delay_s=delay_s,
        )
        self.url = self.server.url

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, args=(0.05,)).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def ping(instance: Instance, url: str) -> tuple[str, str]:
    """Subscribe a URL and have it pinged; return the ids of subscription and event."""
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {instance.token}"
    made = session.post(instance.url + "/v1/webhooks", json={"url": url}, timeout=20)
    endpoint = made.json()["endpoint_id"]
    path = f"{instance.url}/v1/webhooks/{endpoint}/test"
    return endpoint, session.post(path, timeout=20).json()["event_id"]


def test_a_stop_lets_an_attempt_in_progress_end_and_waits_for_no_retry(data):
    for instance in started(data):
        with Hook(500, delay_s=1.5) as hook:
            _, event = ping(instance, hook.url)
            until(lambda: hook.event_ids, "the attempt")
            began = time.monotonic()
            assert instance.process.end() == 0
            took = time.monotonic() - began
        assert hook.event_ids == [event]
        # A shift alone takes 20 s, and lingers for a retry that comes in a minute.
        assert took < 15
        with closing(sqlite3.connect(instance.data)) as connection:
            [row] = connection.execute(
                "select status, attempts, interruptions, last_error, claimed_by"
                " from webhooks_core_delivery"
            )
            [lane] = connection.execute(
                "select leased_by from webhooks_core_endpointqueue"
            )
        assert row == (0, 1, 0, "HTTP 500", None)
        assert lane == (None,)


@pytest.mark.parametrize("word", ["web", "up"])
def test_what_waits_when_processes_are_killed_arrives_after_the_next_start(data, word):
    with Hook(204) as hook:
        for instance in started(data, "--no-worker"):
            _, event = ping(instance, hook.url)
            it = instance.process
            os.kill(it.pid if word == "up" else it.child(word), signal.SIGKILL)
            it.wait_until_nothing_is_left()
        assert hook.event_ids == []
        for _ in started(data):
            until(lambda: hook.event_ids, "the event")
    assert hook.event_ids == [event]


@pytest.mark.parametrize("word", ["qcluster", "worker"])
def test_an_attempt_that_a_kill_interrupts_is_made_again(data, word):
    with Hook(204, delay_s=1) as hook:
        for instance in started(data):
            _, event = ping(instance, hook.url)
            until(lambda: hook.event_ids, "the first attempt")
            os.kill(victim(instance.process, word), signal.SIGKILL)
            if word == "qcluster":
                assert instance.process.status() == 1
                break
            until(lambda: len(hook.event_ids) > 1, "the second attempt", seconds=120)
        if word == "qcluster":
            for _ in started(data):
                until(
                    lambda: len(hook.event_ids) > 1, "the second attempt", seconds=120
                )
        assert hook.event_ids == [event] * 2


def victim(instance: Running, word: str) -> int:
    cluster = instance.child("qcluster")
    [sentinel] = instance.children(cluster)
    workers = instance.children(sentinel)[
        :-2
    ]  # after them come the monitor and the pusher
    busy = max(workers, key=lambda pid: status_field(pid, "Threads"))
    return cluster if word == "qcluster" else busy
