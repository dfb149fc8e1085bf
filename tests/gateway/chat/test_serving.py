"""config.asgi as it is served: chat and all the rest on one port, in a real process."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGTERM
from subprocess import PIPE, STDOUT, Popen
from typing import Any

import pytest
import requests
from django.conf import settings

from tests.gateway.chat.harness import IDENTITY, events_of
from tests.running import PATIENCE_S, until

pytestmark = pytest.mark.slow


def environment(folder: Path) -> dict[str, str]:
    config = folder / "gateway.yaml"
    entry = {"name": "echo", "upstream": "echo", "model": "echo-300ms"}
    quick = {"name": "quick", "upstream": "echo", "model": "echo-0ms"}
    config.write_text(json.dumps({"models": [entry, quick]}))
    return {
        **{k: os.environ[k] for k in ("PATH", "HOME") if k in os.environ},
        "DATABASE_URL": f"sqlite:///{folder / 'db.sqlite3'}",
        "GATEWAY_CONFIG": str(config),
        "PYTHONWARNINGS": "ignore",
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory, migrated_file) -> Path:
    folder: Path = tmp_path_factory.mktemp("serving")
    shutil.copy(migrated_file, folder / "db.sqlite3")
    return folder


@pytest.fixture
def server(folder, free_port) -> Iterator[Any]:
    command = [sys.executable, "manage.py", "web", "--port", str(free_port)]
    process = Popen(
        command,
        env=environment(folder),
        cwd=settings.BASE_DIR,
        stdout=PIPE,
        stderr=STDOUT,
        text=True,
    )
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", free_port)) == 0:
                break
        time.sleep(0.05)
    process.url = f"http://127.0.0.1:{free_port}"  # type: ignore[attr-defined]
    yield process
    process.terminate()
    process.communicate(timeout=PATIENCE_S)


def chat(server, model: str = "quick", **fields: Any) -> requests.Response:
    return requests.post(
        server.url + "/v2/chat/completions",
        json={
            "model": model,
            "messages": [{"role": "user", "content": "one two three"}],
            **fields,
        },
        headers=IDENTITY,
        timeout=PATIENCE_S,
        stream=bool(fields.get("stream")),
    )


def rows(folder: Path, statement: str) -> list[Any]:
    with sqlite3.connect(folder / "db.sqlite3") as database:
        return database.execute(statement).fetchall()


def test_one_port_serves_chat_and_everything_else_to_the_last_stream_and_row(
    server, folder
):
    assert_serves_everything(server)
    # What a proxy says never makes a peer local.
    response = requests.post(
        server.url + "/v2/chat/completions",
        json={"model": "quick"},
        headers={**IDENTITY, "X-Forwarded-For": "127.0.0.1"},
        timeout=PATIENCE_S,
    )
    assert response.status_code == 401

    assert chat(server, "absent").status_code == 404
    embedding = {"model": "absent", "input": "x"}
    requests.post(
        server.url + "/v1/embeddings",
        json=embedding,
        headers=IDENTITY,
        timeout=PATIENCE_S,
    )
    assert chat(server, headers_seen=True).status_code == 200
    # A stream outlives the signal to stop.
    with chat(server, "echo", stream=True) as response:
        parts = response.iter_content(None)
        first = next(parts)
        server.terminate()
        body = first + b"".join(parts)
    assert events_of(body)[-1]["choices"][0]["finish_reason"] == "stop"
    output, _ = server.communicate(timeout=PATIENCE_S)
    assert server.returncode == 0, output
    # Denials and usage are written before the process ends.
    denied = "select action, tenant, resource, reason from gateway_policydecision"
    denial = "acme", "model:absent", "not_found_or_forbidden"
    assert set(rows(folder, denied)) == {
        ("chat.completions", *denial),
        ("embeddings", *denial),
    }
    emitted = (
        "select count(*) from webhooks_core_event where type = 'audit.policy_violation'"
    )
    assert rows(folder, emitted) == [(2,)]
    used = (
        "select model, prompt_tokens, completion_tokens from gateway_chat_usagerecord"
    )
    assert {("quick", 3, 3), ("echo", 3, 3)} <= set(rows(folder, used))


def assert_serves_everything(server) -> None:
    events = events_of(chat(server, stream=True).content)
    assert "".join(
        event["choices"][0]["delta"].get("content", "") for event in events
    ) == ("one two three")
    assert chat(server).json()["choices"][0]["message"]["content"] == "one two three"
    graphql = {"query": "{ __typename }"}
    response = requests.post(server.url + "/graphql", json=graphql, timeout=PATIENCE_S)
    assert response.json() == {"data": {"__typename": "Query"}}
    unknown = requests.get(
        server.url + "/v2/other", headers=IDENTITY, timeout=PATIENCE_S
    )
    assert (unknown.status_code, set(unknown.json())) == (404, {"detail"})
    listed = requests.get(
        server.url + "/v1/models", headers=IDENTITY, timeout=PATIENCE_S
    )
    assert [item["id"] for item in listed.json()["data"]] == ["echo", "quick"]
    for name, status in (("quick", 200), ("no%2Fsuch:model.1", 404)):
        address = f"{server.url}/v1/models/{name}"
        described = requests.get(address, headers=IDENTITY, timeout=PATIENCE_S)
        head = requests.head(address, headers=IDENTITY, timeout=PATIENCE_S)
        assert (described.status_code, head.status_code) == (status, status)
        assert head.headers["Content-Length"] == str(len(described.content))


PREFORK = """
import os, signal, sys, threading
from wsgiref.simple_server import make_server
from config.wsgi import application

server = make_server("127.0.0.1", int(sys.argv[1]), application)
assert threading.active_count() == 1  # threads do not survive a fork
workers = [pid for _ in range(2) if (pid := os.fork())]
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
if len(workers) == 2:
    print("ready", flush=True)
    signal.pause()
server.serve_forever(0.05)
"""


def test_a_server_that_forks_serves_chat_and_writes_what_was_used(folder, free_port):
    process = Popen(
        [sys.executable, "-c", PREFORK, str(free_port)],
        env=environment(folder),
        cwd=settings.BASE_DIR,
        stdout=PIPE,
        text=True,
        start_new_session=True,
    )
    process.url = f"http://127.0.0.1:{free_port}"  # type: ignore[attr-defined]
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    count = "select count(*) from gateway_chat_usagerecord where model = 'quick'"
    [(before,)] = rows(folder, count)
    try:
        for stream in (False, True) * 4:
            response = chat(process, stream=stream)
            assert response.status_code == 200
            assert b"three" in response.content
    finally:
        os.killpg(process.pid, SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    until(lambda: rows(folder, count) == [(before + 8,)], "the usage")
