"""config.asgi as it is served: chat and all the rest on one port, in a real process."""

import json
import os
import shutil
import sqlite3
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from signal import SIGTERM
from typing import Any

import pytest
import requests

from tests import running as processes
from tests.gateway.chat.harness import IDENTITY, V2, events_of, text_of
from tests.running import PATIENCE_S, environment, listens, running, until

pytestmark = pytest.mark.slow

LIMIT = 20
IN_BUDGET = IDENTITY | {"X-Tenant-Id": "limited"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, migrated_file) -> Path:
    folder: Path = tmp_path_factory.mktemp("serving")
    shutil.copy(migrated_file, folder / "db.sqlite3")
    return folder


@pytest.fixture
def variables(folder) -> Mapping[str, str]:
    models = [
        {"name": name, "upstream": "echo", "model": f"echo-{pace}ms"}
        for name, pace in (("echo", 300), ("quick", 0))
    ]
    budgets = [
        {"name": "few", "counts": "requests", "window": "month", "limit": LIMIT}
        | {"tenants": [IN_BUDGET["X-Tenant-Id"]]}
    ]
    content = json.dumps({"models": models, "budgets": budgets})
    (folder / "gateway.yaml").write_text(content)
    return environment(
        DATABASE_URL=f"sqlite:///{folder / 'db.sqlite3'}",
        GATEWAY_CONFIG=str(folder / "gateway.yaml"),
        PYTHONWARNINGS="ignore",
    )


def ask(port: int, path: str, *, method: str = "POST", **options: Any) -> Any:
    url, options = f"http://127.0.0.1:{port}{path}", {"headers": IDENTITY, **options}
    return requests.request(method, url, timeout=PATIENCE_S, **options)


def chat(port: int, model: str = "quick", **fields: Any) -> requests.Response:
    messages = [{"role": "user", "content": "one two three"}]
    body = {"model": model, "messages": messages, **fields}
    response: requests.Response = ask(
        port, V2, json=body, stream=bool(fields.get("stream"))
    )
    return response


def rows(folder: Path, statement: str) -> list[Any]:
    with sqlite3.connect(folder / "db.sqlite3") as database:
        return database.execute(statement).fetchall()


def test_one_port_serves_chat_and_everything_else_to_the_last_stream_and_row(
    folder, variables, free_port
):
    command = ("manage.py", "web", "--port", str(free_port))
    with running(*command, environment=variables) as server:
        until(lambda: listens(free_port), "the server listens")
        assert_serves_everything(free_port)
        # What a proxy says never makes a peer local.
        forwarded = {**IDENTITY, "X-Forwarded-For": "127.0.0.1"}
        response = ask(free_port, V2, json={"model": "quick"}, headers=forwarded)
        assert response.status_code == 401
        absent = {"model": "absent", "input": "x"}
        for path in (V2, "/v1/embeddings"):
            assert ask(free_port, path, json=absent).status_code == 404
        # A stream outlives the signal to stop.
        with chat(free_port, "echo", stream=True) as response:
            parts = response.iter_content(None)
            first = next(parts)
            os.kill(server.pid, SIGTERM)
            body = first + b"".join(parts)
        assert events_of(body)[-1]["choices"][0]["finish_reason"] == "stop"
        assert server.status() == 0, server.output
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
    used = "select model, prompt_tokens, completion_tokens from gateway_chat_requestrecord where model != ''"
    assert {("quick", 3, 3), ("echo", 3, 3)} <= set(rows(folder, used))


def assert_serves_everything(port: int) -> None:
    assert text_of(events_of(chat(port, stream=True).content)) == "one two three"
    assert chat(port).json()["choices"][0]["message"]["content"] == "one two three"
    response = ask(port, "/graphql", json={"query": "{ __typename }"}, headers={})
    assert response.json() == {"data": {"__typename": "Query"}}
    listed = ask(port, "/v1/models", method="GET").json()["data"]
    assert [item["id"] for item in listed] == ["echo", "quick"]
    for name, status in (("quick", 200), ("no%2Fsuch:model.1", 404)):
        described, head = (
            ask(port, f"/v1/models/{name}", method=method) for method in ("GET", "HEAD")
        )
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


def test_a_server_that_forks_serves_chat_and_writes_what_was_used(
    folder, variables, free_port
):
    count = "select count(*) from gateway_chat_requestrecord where model = 'quick'"
    [(before,)] = rows(folder, count)
    with running("-c", PREFORK, str(free_port), environment=variables) as server:
        server.wait_for("ready")
        for stream in (False, True) * 4:
            response = chat(free_port, stream=stream)
            assert response.status_code == 200
            assert b"three" in response.content
        os.killpg(server.pid, SIGTERM)
        until(lambda: rows(folder, count) == [(before + 8,)], "the usage")


def test_two_processes_share_a_budget_by_the_database(folder, variables):
    ports = processes.free_port(), processes.free_port()

    def status(number: int) -> int:
        body = {"model": "quick", "messages": [{"role": "user", "content": "hi"}]}
        port = ports[number % 2]
        response = ask(port, "/v1/chat/completions", json=body, headers=IN_BUDGET)
        return int(response.status_code)

    command = "manage.py", "web", "--port"
    with (
        running(*command, str(ports[0]), environment=variables),
        running(*command, str(ports[1]), environment=variables),
    ):
        for port in ports:
            until(partial(listens, port), "the server listens")
        with ThreadPoolExecutor(40) as pool:
            statuses = [*pool.map(status, range(80))]
        answered = statuses.count(200)
        # Each process stops at the limit, and at once when it knows what the other has used.
        assert LIMIT <= answered <= 2 * LIMIT
        assert statuses.count(429) == 80 - answered
        amount = "select amount from gateway_chat_budgetcounter where budget = 'few'"
        until(
            lambda: rows(folder, amount) == [(answered,)], "both added what they used"
        )
        until(lambda: {status(0), status(1)} == {429}, "both know it")
