"""What several web processes tell each other of callers: budgets used up, and keys revoked."""

import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection
from typing import NamedTuple

import orjson
import pytest

from gateway.keys import CACHE_S
from tests.e2e.starting import answers, outcomes
from tests.running import PATIENCE_S, environment, free_port, running, until

LIMIT, REQUESTS = 50, 200
FILE = f"""
models: [{{name: echo, upstream: echo}}]
budgets: [{{name: b, counts: requests, window: month, limit: {LIMIT}, tenants: [acme]}}]
"""
BODY = orjson.dumps({"model": "echo", "messages": [{"role": "user", "content": "Hi"}]})
JSON = {"Content-Type": "application/json"}
ADA = {**JSON, "X-Tenant-Id": "acme", "X-Principal-Id": "ada"}


class Site(NamedTuple):
    """Two web processes that share a port and an SQLite file."""

    port: int
    environment: dict[str, str]

    def connection(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)


@pytest.fixture
def site(data, tmp_path):
    (tmp_path / "gateway.yaml").write_text(FILE)
    variables = environment(
        DATABASE_URL=f"sqlite:///{data}", GATEWAY_CONFIG=str(tmp_path / "gateway.yaml")
    )
    port = free_port()
    options = ("--port", str(port), "--processes", "2")
    with running("manage.py", "web", *options, environment=variables):
        until(lambda: answers(f"http://127.0.0.1:{port}/healthz"), "an answer")
        yield Site(port, variables)


def chat(connection: HTTPConnection, headers: Mapping[str, str]) -> int:
    connection.request("POST", "/v1/chat/completions", BODY, dict(headers))
    response = connection.getresponse()
    response.read()
    return response.status


def test_a_burst_does_not_use_up_a_budget_in_each_process(site):
    begin, statuses = threading.Barrier(REQUESTS), []

    def ask() -> None:
        with closing(site.connection()) as connection:
            connection.connect()
            begin.wait()
            statuses.append(chat(connection, ADA))

    threads = [threading.Thread(target=ask) for _ in range(REQUESTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = Counter(statuses)
    assert set(counts) == {200, 429}
    # Some of the other process may have passed between two readings of the rows.
    assert LIMIT <= counts[200] <= LIMIT * 1.2
    with closing(site.connection()) as connection:
        assert chat(connection, ADA) == 429


def test_a_revoked_key_is_refused_by_the_other_process_too(site):
    create = ("create_gateway_key", "--tenant", "beta", "--principal", "bob", "--json")
    made = outcomes(create, environment=site.environment)[0]
    key = orjson.loads(made.output)
    headers = {**JSON, "Authorization": f"Bearer {key['key']}"}
    connections = [site.connection() for _ in range(10)]
    try:
        assert {chat(each, headers) for each in connections} == {200}
        revoke = ("revoke_gateway_key", str(key["id"]))
        assert outcomes(revoke, environment=site.environment)[0].status == 0
        revoked_at = time.monotonic()

        def is_over() -> bool:
            asked_at = time.monotonic()
            statuses = {chat(each, headers) for each in connections}
            # However slow the machine is: who asks later than that is refused.
            assert asked_at - revoked_at <= CACHE_S or statuses == {401}
            return statuses == {401}

        until(is_over, "refusals by both processes")
    finally:
        for each in connections:
            each.close()
