"""Processes that are killed or stopped while events wait or are on their way."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

import pytest
import requests

from tests.e2e.starting import (
    READY,
    Instance,
    hurry,
    is_refused,
    start,
    wait_for_everybody,
    web_server,
)
from tests.running import PATIENCE_S, Running, free_port, status_field, until
from webhooks_core.verifying.receiver import Receiver

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


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


@contextmanager
def started(data: Path, **more: str) -> Iterator[Instance]:
    """Start an instance on a file of data, which may be an earlier instance's."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with start(data, "--port", str(port), **more) as process:
        process.wait_for(READY)
        yield Instance(process, data, url)


def ping(url: str, token: str, hook: Hook) -> str:
    """Subscribe a receiver and have it pinged; return the id of the event."""
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {token}"
    hooks = f"{url}/v1/webhooks"
    made = session.post(hooks, json={"url": hook.url}, timeout=60).json()
    pinged = session.post(f"{hooks}/{made['endpoint_id']}/test", timeout=60)
    event: str = pinged.json()["event_id"]
    return event


def delivery(data: Path, event: str) -> tuple[object, ...]:
    with closing(sqlite3.connect(data, timeout=PATIENCE_S)) as connection:
        [row] = connection.execute(
            "select status, attempts, interruptions, last_error, claimed_by"
            " from webhooks_core_delivery where event_id in"
            " (select id from webhooks_core_event where public_id = ?)",
            (event,),
        )
    return tuple(row)


def waits_for_a_retry(data: Path, event: str) -> bool:
    status, attempts, _, _, claimed_by = delivery(data, event)
    return (status, attempts, claimed_by) == (0, 1, None)


def is_delivered(data: Path, event: str) -> bool:
    return delivery(data, event)[0] == 1


def worker_of(instance: Running) -> int:
    [main] = instance.children(instance.child("qcluster"))
    [sentinel] = instance.children(main)
    # After the workers come the monitor and the pusher.
    workers = instance.children(sentinel)[:-2]
    return max(workers, key=lambda pid: status_field(pid, "Threads"))


def test_what_waits_when_processes_are_killed_arrives_after_the_next_start(data):
    """No process outlives a killed supervisor, and a killed web server ends everything."""
    with Hook(500, 204) as retried, Hook(204) as unattempted:
        with started(data) as instance:
            token, it = instance.token, instance.process
            first = ping(instance.url, token, retried)
            until(lambda: waits_for_a_retry(data, first), "a failed attempt")
            wait_for_everybody(it)
            os.kill(it.pid, signal.SIGKILL)
            it.wait_until_nothing_is_left()
            assert it.status() == -signal.SIGKILL
        assert retried.event_ids == [first]

        with web_server(data) as instance:
            second = ping(instance.url, token, unattempted)
            assert instance.process.end(signal.SIGKILL) == -signal.SIGKILL
            instance.process.wait_until_nothing_is_left()
        assert unattempted.event_ids == []

        hurry(data)
        with started(data) as instance:
            it = instance.process
            until(lambda: len(retried.event_ids) > 1, "the second attempt")
            until(lambda: unattempted.event_ids, "the event")
            wait_for_everybody(it)
            os.kill(it.child("web"), signal.SIGKILL)
            assert it.status() == 1
            assert "the web server ended unexpectedly (killed by SIGKILL)" in it.output
            it.wait_until_nothing_is_left()
        assert retried.event_ids == [first] * 2
        assert unattempted.event_ids == [second]


@pytest.mark.timeout(600)
def test_an_attempt_that_a_kill_interrupts_is_made_again_and_a_stop_lets_it_end(
    data, tmp_path
):
    """A killed cluster ends everything. A stop lets streams end and accepts no new request."""
    config = tmp_path / "gateway.yaml"
    model = {"name": "slow", "upstream": "echo", "model": "echo-500ms"}
    config.write_text(json.dumps({"models": [model]}))
    hooks = Hook(204, delay_s=1), Hook(204, delay_s=1), Hook(500, delay_s=1.5)
    with hooks[0] as of_worker, hooks[1] as of_cluster, hooks[2] as of_stop:
        with started(data, WORKERS="2") as instance:
            token, it = instance.token, instance.process
            event = ping(instance.url, token, of_worker)
            until(lambda: of_worker.event_ids, "the first attempt")
            os.kill(worker_of(it), signal.SIGKILL)
            until(lambda: is_delivered(data, event), "the second attempt", seconds=120)
            assert of_worker.event_ids == [event] * 2

            event = ping(instance.url, token, of_cluster)
            until(lambda: of_cluster.event_ids, "the first attempt")
            os.kill(it.child("qcluster"), signal.SIGKILL)
            assert it.status() == 1
            words = "the task cluster ended unexpectedly (killed by SIGKILL)"
            assert words in it.output
            it.wait_until_nothing_is_left()

        with started(data, GATEWAY_CONFIG=str(config)) as instance:
            until(lambda: is_delivered(data, event), "the second attempt", seconds=120)
            assert of_cluster.event_ids == [event] * 2
            stop_during_an_attempt_and_a_stream(instance, token, of_stop)


def stop_during_an_attempt_and_a_stream(
    instance: Instance, token: str, hook: Hook
) -> None:
    it = instance.process
    wait_for_everybody(it)
    said = {"role": "user", "content": "one two three four five six seven eight"}
    with requests.post(
        f"{instance.url}/v2/chat/completions",
        json={"model": "slow", "stream": True, "messages": [said]},
        headers={"X-Tenant-Id": "acme", "X-Principal-Id": "ada"},
        stream=True,
        timeout=60,
    ) as answer:
        parts = answer.iter_content(None)
        body = next(parts)
        event = ping(instance.url, token, hook)
        until(lambda: hook.event_ids, "the attempt")
        os.kill(it.pid, signal.SIGTERM)
        until(lambda: is_refused("127.0.0.1", instance.port), "the end of listening")
        assert it.child("manage.py web") in it.children()
        body += b"".join(parts)
    assert b'"finish_reason":"stop"' in body
    assert b"eight" in body
    assert it.status() == 0
    assert it.family() == []
    assert "Traceback" not in it.output
    socket.create_server(("127.0.0.1", instance.port)).close()
    assert hook.event_ids == [event]
    assert delivery(instance.data, event) == (0, 1, 0, "HTTP 500", None)
    with closing(sqlite3.connect(instance.data)) as connection:
        queues = connection.execute("select leased_by from webhooks_core_endpointqueue")
        assert set(queues) == {(None,)}
