"""An instance that is stopped while an event is on its way."""

import json
import os
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

import requests

from tests.e2e.starting import (
    READY,
    Instance,
    is_refused,
    start,
    wait_for_everybody,
)
from tests.running import PATIENCE_S, free_port, until
from webhooks_core.management.receiver import Receiver
from webhooks_core.management.verification import Received


class Hook:
    """A receiver in a thread of the test."""

    def __init__(self, *statuses: int, delay_s: float = 0) -> None:
        self.event_ids: list[str] = []
        self.delay_s = delay_s
        self.server = Receiver(0, on_request=self._keep, statuses=statuses)
        self.url = self.server.url

    def _keep(self, received: Received, _status: int) -> None:
        self.event_ids.append(received.event_id)
        time.sleep(self.delay_s)

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


def test_a_stop_lets_an_attempt_and_a_stream_end_and_accepts_no_new_request(
    data, tmp_path
):
    config = tmp_path / "gateway.yaml"
    model = {"name": "slow", "upstream": "echo", "model": "echo-500ms"}
    config.write_text(json.dumps({"models": [model]}))
    with (
        Hook(500, delay_s=1.5) as hook,
        started(data, GATEWAY_CONFIG=str(config)) as instance,
    ):
        wait_for_everybody(instance.process)
        stop_during_an_attempt_and_a_stream(instance, hook)


def stop_during_an_attempt_and_a_stream(instance: Instance, hook: Hook) -> None:
    it = instance.process
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
        event = ping(instance.url, instance.token, hook)
        until(lambda: hook.event_ids, "the attempt")
        os.kill(it.pid, signal.SIGTERM)
        until(lambda: is_refused("127.0.0.1", instance.port), "the end of listening")
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
