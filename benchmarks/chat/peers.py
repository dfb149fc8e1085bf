"""What the benchmark measures: Signpost, and the gateways that `make bench-peers` installs."""

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

import requests
from django.conf import settings

from benchmarks.chat.load import Server
from benchmarks.deliveries.process_tree import descendants

PEERS = Path("var") / "bench-peers"
# The model behind an upstream of Anthropic's kind.
OWN_KIND = "bench-own"
START_S = 90.0
# The name of the gateway that is measured.
OURS = "signpost"
# None of them sees what this shell says about databases.
BARE = {k: v for k, v in os.environ.items() if k not in {"DATABASE_URL", "REDIS_URL"}}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
        yield Server("straight", port, "/v1/chat/completions", {}, (pid,))


@contextmanager
def signpost(folder: Path, upstream: Server, processes: int = 1) -> Iterator[Server]:
    """Processes as `manage.py up` runs them, with their own key and with usage written.

    With the packages of production, like the others, where these are installed.
    """
    port, python = free_port(), _python()
    folder /= f"signpost-{processes}"
    folder.mkdir()
    config = folder / "gateway.json"
    own = {**_model(upstream), "name": OWN_KIND, "upstream": "anthropic"}
    config.write_text(json.dumps({"models": [_model(upstream), own]}))
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
    command += ["--processes", str(processes)]
    with process(command, port, log=folder / "signpost.log", **environment) as pid:
        headers = {"Authorization": f"Bearer {key.split()[-1]}"}
        name = OURS if processes == 1 else f"{OURS}, {processes} processes"
        pids = tuple(descendants(pid))
        yield Server(name, port, "/v2/chat/completions", headers, pids)


def _model(upstream: Server) -> Mapping[str, str]:
    return {
        "name": "bench",
        "upstream": "openai",
        "base_url": f"http://127.0.0.1:{upstream.port}/v1",
        "model": "bench-upstream",
        "api_key": "sk-bench",
    }


def _python() -> str:
    program = settings.BASE_DIR / PEERS / "signpost" / "bin" / "python"
    return str(program) if program.exists() else sys.executable


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
    program = settings.BASE_DIR / PEERS / "litellm" / "bin" / "litellm"
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
    key = f"sk-{secrets.token_hex(32)}"
    environment = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False",
        "LITELLM_LOG": "ERROR",
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_MASTER_KEY": key,
    }
    with process(command, port, log=folder / "litellm.log", **environment) as pid:
        headers = {"Authorization": f"Bearer {key}"}
        pids = tuple(descendants(pid))
        yield Server("litellm", port, "/v1/chat/completions", headers, pids)


@contextmanager
def portkey(folder: Path, upstream: Server) -> Iterator[Server | None]:
    """Portkey's gateway; None when it is not installed."""
    package = PEERS / "portkey" / "node_modules" / "@portkey-ai" / "gateway"
    program = settings.BASE_DIR / package / "build" / "start-server.js"
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
        yield Server("portkey", port, "/v1/chat/completions", headers, (pid,))


@contextmanager
def all_servers(
    folder: Path, only: Sequence[str], processes: int = 1
) -> Iterator[list[Server]]:
    """Start the installed servers that are wanted; the upstream is the first.

    With more than one of `processes`, Signpost runs with so many beside the one.
    """
    with ExitStack() as stack:
        upstream = stack.enter_context(mock(folder))
        servers: list[Server | None] = [upstream]
        servers += [
            stack.enter_context(start(folder, upstream))
            for start in (signpost, litellm, portkey)
            if not only or start.__name__ in only
        ]
        if processes > 1:
            more = stack.enter_context(signpost(folder, upstream, processes))
            servers.append(more)
        servers += [
            each
            for server in servers
            if server is not None and server.name == OURS
            for each in (*_messages(server), _responses(server))
        ]
        yield [_checked(server) for server in servers if server is not None]


def _messages(server: Server) -> list[Server]:
    """Return Signpost in Anthropic's shape: translated, and passed to an upstream of that kind."""
    translated = replace(server, name="signpost, Messages", path="/v1/messages")
    return [
        translated,
        replace(translated, name="signpost, Messages passed on", model=OWN_KIND),
    ]


def _responses(server: Server) -> Server:
    """Return the same process by its address of the Responses API, which it translates."""
    path = "/v1/responses"
    return replace(server, name=path, path=path, conversation="input")


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
