"""Several web processes on one port: shared work, a death, and a stop while a stream runs."""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import ExitStack, suppress

import requests

from tests.running import (
    PATIENCE_S,
    Running,
    environment,
    free_port,
    running,
    until,
)

IDENTITY = {"X-Tenant-Id": "acme", "X-Principal-Id": "ada"}
SLOW = """
models:
  - {name: echo, upstream: echo}
  - {name: slow, upstream: echo, model: echo-500ms}
"""


def free_ports(number: int) -> int:
    """Return the first of so many free ports in a row."""
    while True:
        first = free_port()
        with suppress(OSError), ExitStack() as probes:
            for port in range(first, first + number):
                probe = probes.enter_context(socket.socket())
                probe.bind(("127.0.0.1", port))
            return first


def get(port: int, path: str) -> requests.Response:
    return requests.get(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S)


def answered(port: int) -> float:
    """Return how many probes the process has answered that has this port."""
    lines = get(port, "/metrics").text.splitlines()
    counts = (
        float(line.rpartition(" ")[2])
        for line in lines
        if line.startswith("signpost_http_requests_total{")
        and 'route="/healthz"' in line
    )
    return sum(counts)


def answers(port: int) -> bool:
    with suppress(requests.ConnectionError):
        return get(port, "/healthz").ok
    return False


def chat(port: int, model: str, *, stream: bool = False) -> requests.Response:
    message = {"role": "user", "content": "one two three four five six"}
    return requests.post(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        json={"model": model, "messages": [message], "stream": stream},
        headers=IDENTITY,
        timeout=PATIENCE_S,
        stream=stream,
    )


def test_processes_share_a_port_and_one_that_dies_is_replaced(data, tmp_path):
    (tmp_path / "gateway.yaml").write_text(SLOW)
    variables = environment(
        DATABASE_URL=f"sqlite:///{data}",
        GATEWAY_CONFIG=str(tmp_path / "gateway.yaml"),
    )
    port, own = free_port(), free_ports(2)
    options = ("--port", str(port), "--processes", "2", "--own-port", str(own))
    with running("manage.py", "web", *options, environment=variables) as process:
        until(lambda: answers(own) and answers(own + 1), "both processes answer")
        before = [answered(own), answered(own + 1)]

        def both_have_answered() -> bool:
            get(port, "/healthz")
            return all(answered(own + n) > before[n] for n in (0, 1))

        until(both_have_answered, "both serve the shared port")
        first, second = process.children()
        os.kill(first, signal.SIGKILL)
        process.wait_for("starting it again")
        assert chat(port, "echo").ok
        until(lambda: answers(own) and answers(own + 1), "both processes answer again")
        assert second in process.children()
        _check_that_a_stop_waits_for_a_stream(process, port)


def _check_that_a_stop_waits_for_a_stream(process: Running, port: int) -> None:
    response = chat(port, "slow", stream=True)
    lines = response.iter_lines(1)
    next(lines)
    status: list[int] = []
    stop = threading.Thread(target=lambda: status.append(process.end()))
    stop.start()
    rest = list(lines)
    stop.join(PATIENCE_S)
    assert rest[-2] == b"data: [DONE]"
    assert any(b"six" in line for line in rest)
    assert status == [0]
    assert process.family() == []
