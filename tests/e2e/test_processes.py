"""Several web processes on one port: a death, and a stop while a stream runs."""

import os
import signal
import threading

import requests

from tests.e2e.starting import answers
from tests.running import (
    PATIENCE_S,
    command_line,
    environment,
    free_port,
    running,
    until,
)

IDENTITY = {"X-Tenant-Id": "acme", "X-Principal-Id": "ada"}
SLOW = "models:\n  - {name: slow, upstream: echo, model: echo-500ms}\n"
WORKER = "spawn_main"  # on the command line of uvicorn's processes


def test_processes_share_a_port_one_that_dies_is_replaced_and_a_stop_waits(
    data, tmp_path
):
    (tmp_path / "gateway.yaml").write_text(SLOW)
    variables = environment(
        DATABASE_URL=f"sqlite:///{data}",
        GATEWAY_CONFIG=str(tmp_path / "gateway.yaml"),
    )
    url = f"http://127.0.0.1:{free_port()}"
    options = ("--port", url.rpartition(":")[2], "--processes", "2")
    with running("manage.py", "web", *options, environment=variables) as process:
        until(lambda: answers(f"{url}/healthz"), "an answer")
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
            address, json=body, headers=IDENTITY, timeout=PATIENCE_S, stream=True
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
