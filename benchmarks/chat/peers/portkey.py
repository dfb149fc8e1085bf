"""Portkey's gateway, in JavaScript."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.chat.load import CHAT, Server
from benchmarks.machine import free_port, running
from benchmarks.results import PEERS


@contextmanager
def portkey(folder: Path, upstream: Server) -> Iterator[Server | None]:
    """Portkey's gateway; None when it is not installed."""
    package = PEERS / "portkey" / "node_modules" / "@portkey-ai" / "gateway"
    script = package / "build" / "start-server.js"
    node = shutil.which("node")
    if node is None or not script.exists():
        yield None
        return
    port = free_port()
    command = (node, script, f"--port={port}", "--headless")
    headers = {
        "Authorization": "Bearer sk-bench",
        "x-portkey-provider": "openai",
        "x-portkey-custom-host": f"http://127.0.0.1:{upstream.port}/v1",
    }
    environment = os.environ | {"NODE_ENV": "production"}
    with running(command, environment, folder / "portkey.log", port=port) as program:
        yield Server("portkey", port, CHAT, headers, program)
