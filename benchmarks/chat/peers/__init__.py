"""What the benchmark measures: Signpost, and the gateways in var/bench-peers, a file each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import requests
from django.conf import settings

from benchmarks.chat.load import CHAT, Server
from benchmarks.chat.peers.ferrogw import ferrogw
from benchmarks.chat.peers.litellm import litellm
from benchmarks.chat.peers.portkey import portkey
from benchmarks.machine import BenchError, free_port, running, slug_of

OURS = "signpost"


@contextmanager
def mock(folder: Path) -> Iterator[Server]:
    """The upstream itself: what nothing in between could be quicker than."""
    port = free_port()
    command = (sys.executable, "-m", "benchmarks.chat.mock", str(port))
    with running(command, os.environ, folder / "mock.log", port=port) as program:
        yield Server("straight", port, CHAT, {}, program)


@contextmanager
def signpost(
    folder: Path, upstream: Server, name: str = OURS, **entries: Any
) -> Iterator[Server]:
    """A process as `manage.py up` runs it, with its own key and with usage written."""
    port = free_port()
    folder /= slug_of(name)
    folder.mkdir()
    config = folder / "gateway.json"
    models = [_model(upstream)]
    config.write_text(json.dumps({"models": models, **entries}))
    environment = os.environ | {
        "ENVIRONMENT": "local",
        "DATABASE_URL": f"sqlite:///{folder / 'bench.sqlite3'}",
        "REDIS_URL": "",
        "GATEWAY_CONFIG": str(config),
        "CHAT_REQUESTS_AT_ONCE": "0",  # like the others; --held may ask for more
    }
    _manage(environment, "migrate", "-v0")
    named = "--tenant", "bench", "--principal", "bench"
    key = _manage(environment, "create_gateway_key", *named).split()[-1]
    command = (sys.executable, "manage.py", "web", "--port", str(port))
    with running(command, environment, folder / "web.log", port=port) as program:
        headers = {"Authorization": f"Bearer {key}"}
        yield Server(name, port, "/v2/chat/completions", headers, program)


def _model(upstream: Server) -> dict[str, Any]:
    return {
        "name": "bench",
        "upstream": "openai",
        "base_url": f"http://127.0.0.1:{upstream.port}/v1",
        "model": "bench-upstream",
        "api_key": "sk-bench",
    }


def _manage(environment: Mapping[str, str], *arguments: str) -> str:
    return subprocess.run(  # noqa: S603 - commands of ours
        [sys.executable, "manage.py", *arguments],
        env=environment,
        cwd=settings.BASE_DIR,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


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
            except BenchError as error:
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

    Raises BenchError for one that does not even answer.
    """
    if (fault := _fault(server, stream=False)) is not None:
        raise BenchError(f"{server.name}: {fault}")
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
