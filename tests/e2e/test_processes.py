"""Several web processes on one port: a death, a stop while a stream runs, a key that is revoked."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from typing import NamedTuple

import orjson
import pytest
import requests

from gateway.keys import CACHE_S
from tests.e2e.starting import answers, outcomes
from tests.running import PATIENCE_S, Running, command_line, environment, until, web

JSON = {"Content-Type": "application/json"}
ADA = {"X-Tenant-Id": "acme", "X-Principal-Id": "ada"}
FILE = "models: [{name: echo, upstream: echo}, {name: slow, upstream: echo, model: echo-500ms}]"
BODY = orjson.dumps({"model": "echo", "messages": [{"role": "user", "content": "Hi"}]})
WORKER = "spawn_main"  # on the command line of uvicorn's processes


class Site(NamedTuple):
    """Two web processes that share a port and an SQLite file."""

    process: Running
    url: str
    environment: dict[str, str]


@pytest.fixture
def site(data, tmp_path) -> Iterator[Site]:
    (tmp_path / "gateway.yaml").write_text(FILE)
    variables = environment(
        DATABASE_URL=f"sqlite:///{data}", GATEWAY_CONFIG=str(tmp_path / "gateway.yaml")
    )
    with web(variables, "--processes", "2") as (process, url):
        until(lambda: answers(f"{url}/healthz"), "an answer")
        yield Site(process, url, variables)


def test_processes_share_a_port_one_that_dies_is_replaced_and_a_stop_waits(site):
    process, url, _ = site
    workers = {pid for pid in process.children() if WORKER in command_line(pid)}
    assert len(workers) == 2
    victim = workers.pop()
    os.kill(victim, signal.SIGKILL)
    until(lambda: victim not in process.children(), "its end")
    until(lambda: len(process.children()) >= 3, "its replacement")
    assert answers(f"{url}/healthz")
    message = {"role": "user", "content": "one two three four five six"}
    body = {"model": "slow", "messages": [message], "stream": True}
    address = f"{url}/v1/chat/completions"
    with requests.post(
        address, json=body, headers=ADA, timeout=PATIENCE_S, stream=True
    ) as response:
        lines = response.iter_lines(1)
        next(lines)
        stop = threading.Thread(target=process.end)
        stop.start()
        rest = list(lines)
    stop.join(PATIENCE_S)
    assert rest[-2] == b"data: [DONE]"
    assert any(b"six" in line for line in rest)
    assert process.status() == 0
    process.wait_until_nothing_is_left()


def test_a_revoked_key_is_refused_by_the_other_process_too(site):
    create = ("create_gateway_key", "--tenant", "beta", "--principal", "bob", "--json")
    key = orjson.loads(outcomes(create, environment=site.environment)[0].output)
    headers = {**JSON, "Authorization": f"Bearer {key['key']}"}
    with ExitStack() as stack:
        # Of several connections each process has some.
        host = site.url.removeprefix("http://")
        connections = [
            stack.enter_context(closing(HTTPConnection(host, timeout=PATIENCE_S)))
            for _ in range(10)
        ]

        def statuses() -> set[int]:
            found = set()
            for each in connections:
                each.request("POST", "/v1/chat/completions", BODY, headers)
                with each.getresponse() as response:
                    response.read()
                    found.add(response.status)
            return found

        assert statuses() == {200}
        revoke = ("revoke_gateway_key", str(key["id"]))
        assert outcomes(revoke, environment=site.environment)[0].status == 0
        revoked_at = time.monotonic()

        def is_over() -> bool:
            asked_at, found = time.monotonic(), statuses()
            # However slow the machine is: who asks later than that is refused.
            assert asked_at - revoked_at <= CACHE_S or found == {401}
            return found == {401}

        until(is_over, "refusals by both processes")
