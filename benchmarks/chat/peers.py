"""What the benchmark measures: Signpost, and the gateways in var/bench-peers."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import requests
from django.conf import settings

from benchmarks.chat.load import Server
from benchmarks.deliveries.environments import free_port, slug_of
from benchmarks.deliveries.process_tree import descendants
from benchmarks.results import PEERS

OURS = "signpost"
START_S = 90.0
CHAT = "/v1/chat/completions"
KEY = f"sk-{secrets.token_hex(32)}"
BEARER = {"Authorization": f"Bearer {KEY}"}
# None of them sees what this shell says about databases.
BARE = {k: v for k, v in os.environ.items() if k not in {"DATABASE_URL", "REDIS_URL"}}


@contextmanager
def process(
    command: Sequence[str | Path], port: int, *, log: Path, **environment: str
) -> Iterator[int]:
    """Run a server until the block ends; give its process id once it listens."""
    with log.open("wb") as out:
        started = subprocess.Popen(  # noqa: S603 - commands of ours
            list(map(str, command)),
            env=BARE | environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=settings.BASE_DIR,
        )
        try:
            _wait_for(port, started, log)
            yield started.pid
        finally:
            started.terminate()
            try:
                started.wait(20)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()


def _wait_for(port: int, started: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if started.poll() is not None:
            break
        try:
            with socket.create_connection(("127.0.0.1", port), 1):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"did not start: {log.read_text(errors='replace')[-2000:]}")


@contextmanager
def mock(folder: Path) -> Iterator[Server]:
    """The upstream itself: what nothing in between could be quicker than."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.chat.mock", str(port)]
    with process(command, port, log=folder / "mock.log") as pid:
        yield Server("straight", port, CHAT, {}, (pid,))


@contextmanager
def signpost(
    folder: Path, upstream: Server, name: str = OURS, **entries: Any
) -> Iterator[Server]:
    """A process as `manage.py up` runs it, with its own key and with usage written."""
    port, python = free_port(), sys.executable
    folder /= slug_of(name)
    folder.mkdir()
    config = folder / "gateway.json"
    models = [_model(upstream)]
    config.write_text(json.dumps({"models": models, **entries}))
    environment = {
        "ENVIRONMENT": "local",
        "DATABASE_URL": f"sqlite:///{folder / 'bench.sqlite3'}",
        "REDIS_URL": "",
        "GATEWAY_CONFIG": str(config),
        "CHAT_REQUESTS_AT_ONCE": "0",  # like the others; --held may ask for more
    }
    _manage(python, "migrate", "-v0", **environment)
    named = "--tenant", "bench", "--principal", "bench"
    key = _manage(python, "create_gateway_key", *named, **environment)
    command: list[str | Path] = [python, "manage.py", "web", "--port", str(port)]
    with process(command, port, log=folder / "signpost.log", **environment) as pid:
        headers = {"Authorization": f"Bearer {key.split()[-1]}"}
        pids = tuple(descendants(pid))
        yield Server(name, port, "/v2/chat/completions", headers, pids)


def _model(upstream: Server) -> dict[str, Any]:
    return {
        "name": "bench",
        "upstream": "openai",
        "base_url": f"http://127.0.0.1:{upstream.port}/v1",
        "model": "bench-upstream",
        "api_key": "sk-bench",
    }


def _manage(python: str, *arguments: str, **environment: str) -> str:
    return subprocess.run(  # noqa: S603 - commands of ours
        [python, "manage.py", *arguments],
        env=os.environ | environment,
        cwd=settings.BASE_DIR,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@contextmanager
def litellm(folder: Path, upstream: Server) -> Iterator[Server | None]:
    """LiteLLM's proxy, without a database; None when it is not installed."""
    program = GATEWAYS / "litellm"
    if not program.exists():
        yield None
        return
    port, config = free_port(), folder / "litellm.yaml"
    parameters = {
        "model": "openai/bench-upstream",
        "api_base": f"http://127.0.0.1:{upstream.port}/v1",
        "api_key": "sk-bench",
    }
    models = [{"model_name": "bench", "litellm_params": parameters}]
    config.write_text(json.dumps({"model_list": models}))
    command: list[str | Path] = [
        *(program, "--config", config, "--host", "127.0.0.1"),
        *("--port", str(port), "--num_workers", "1"),
    ]
    environment = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False",
        "LITELLM_LOG": "ERROR",
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_MASTER_KEY": KEY,
    }
    with process(command, port, log=folder / "litellm.log", **environment) as pid:
        pids = tuple(descendants(pid))
        yield Server("litellm", port, CHAT, BEARER, pids)


@contextmanager
def ferrogw(folder: Path, upstream: Server) -> Iterator[Server | None]:
    """Ferro Labs' gateway in Go, all stores in memory; None when it is not installed.

    It has no option for the address that it listens on, so it has a key.
    """
    program = GATEWAYS / "ferrogw"
    if not program.exists():
        yield None
        return
    port, config = free_port(), folder / "ferrogw.yaml"
    targets = [{"virtual_key": "openai"}]
    config.write_text(
        json.dumps({"strategy": {"mode": "fallback"}, "targets": targets})
    )
    origin = f"http://127.0.0.1:{upstream.port}"
    environment = {
        "OPENAI_API_KEY": "sk-bench",
        "OPENAI_BASE_URL": origin,
        "GATEWAY_CONFIG": str(config),
        "MASTER_KEY": KEY,
        "LOG_LEVEL": "error",
        "RATE_LIMIT_RPS": "1000000",  # 20 without it
        "RATE_LIMIT_BURST": "1000000",
        "PORT": str(port),
    }
    command: list[str | Path] = [program, "serve"]
    with process(command, port, log=folder / "ferrogw.log", **environment) as pid:
        # It knows models by their names alone.
        yield Server("ferrogw", port, CHAT, BEARER, (pid,), model="gpt-4o")


@contextmanager
def portkey(folder: Path, upstream: Server) -> Iterator[Server | None]:
    """Portkey's gateway; None when it is not installed."""
    package = PORTKEY / "node_modules" / "@portkey-ai" / "gateway"
    program = package / "build" / "start-server.js"
    node = shutil.which("node")
    if node is None or not program.exists():
        yield None
        return
    port = free_port()
    command: list[str | Path] = [node, program, f"--port={port}", "--headless"]
    headers = {
        "Authorization": "Bearer sk-bench",
        "x-portkey-provider": "openai",
        "x-portkey-custom-host": f"http://127.0.0.1:{upstream.port}/v1",
    }
    with process(
        command, port, log=folder / "portkey.log", NODE_ENV="production"
    ) as pid:
        yield Server("portkey", port, CHAT, headers, (pid,))


GATEWAYS = PEERS / "gateways" / "bin"
PORTKEY = PEERS / "portkey"
ALL = (signpost, litellm, portkey, ferrogw)
CONTROLS: Mapping[str, Any] = {
    "budgets": [
        {
            "name": "all",
            "counts": "tokens",
            "window": "day",
            "limit": 1e9,
            "per": ["tenant"],
        }
    ],
    "request_log": {"models": ["bench"]},
}


@contextmanager
def all_servers(
    folder: Path,
    only: Sequence[str],
    left_out: dict[str, str],
) -> Iterator[list[Server]]:
    """Start the installed servers that are wanted; the upstream is the first.

    `left_out` gets the reasons why others are not measured. Signpost runs once more with a budget
    and the request log.
    """
    with ExitStack() as stack:
        upstream = stack.enter_context(mock(folder))
        servers = [upstream]
        for start in ALL:
            name = start.__name__
            if only and name not in only:
                continue
            try:
                server = stack.enter_context(start(folder, upstream))
            except RuntimeError as error:
                if name == OURS:
                    raise
                left_out[name] = str(error)[-200:]
                continue
            if server is None:
                left_out[name] = "not installed"
            else:
                servers.append(server)
        limited = signpost(folder, upstream, f"{OURS}, budget and log", **CONTROLS)
        servers.append(stack.enter_context(limited))
        yield [_checked(server) for server in servers]


def _checked(server: Server) -> Server:
    """Return a server that answers; a peer that cannot stream here is measured without.

    Raises RuntimeError for one that does not even answer.
    """
    if (fault := _fault(server, stream=False)) is not None:
        raise RuntimeError(f"{server.name}: {fault}")
    return replace(server, streams=_fault(server, stream=True) is None)


def _fault(server: Server, *, stream: bool) -> str | None:
    answer = requests.post(
        f"http://127.0.0.1:{server.port}{server.path}",
        data=server.request(stream=stream).partition(b"\r\n\r\n")[2],
        headers={"Content-Type": "application/json", **server.headers},
        timeout=60,
    )
    expected = b"word" if stream else b"harbour"
    if answer.status_code == 200 and expected in answer.content:
        return None
    return f"{answer.status_code} {answer.text[:500]}"
