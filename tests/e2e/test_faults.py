"""An instance that is stopped while an event is on its way."""

import json
import os
import signal
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import requests

from tests.e2e.starting import Instance, is_refused, started, wait_for_everybody
from tests.receiver import Receiver, receiver
from tests.running import PATIENCE_S, until


def ping(url: str, token: str, hook: Receiver) -> str:
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
        receiver(500, delay=1.5) as hook,
        started(data, GATEWAY_CONFIG=str(config)) as instance,
    ):
        wait_for_everybody(instance.process)
        stop_during_an_attempt_and_a_stream(instance, hook)


def stop_during_an_attempt_and_a_stream(instance: Instance, hook: Receiver) -> None:
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
        until(lambda: hook.requests, "the attempt")
        os.kill(it.pid, signal.SIGTERM)
        until(lambda: is_refused("127.0.0.1", instance.port), "the end of listening")
        body += b"".join(parts)
    assert b'"finish_reason":"stop"' in body
    assert b"eight" in body
    assert it.status() == 0
    assert it.family() == []
    assert "Traceback" not in it.output
    socket.create_server(("127.0.0.1", instance.port)).close()
    assert [json.loads(each.body)["id"] for each in hook.requests] == [event]
    assert delivery(instance.data, event) == (0, 1, 0, "HTTP 500", None)
    with closing(sqlite3.connect(instance.data)) as connection:
        queues = connection.execute("select leased_by from webhooks_core_endpointqueue")
        assert set(queues) == {(None,)}
