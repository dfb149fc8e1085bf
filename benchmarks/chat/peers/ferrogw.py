"""Ferro Labs' gateway, in Go."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.chat.load import BEARER, CHAT, KEY, Server
from benchmarks.machine import free_port, running
from benchmarks.results import PEERS


@contextmanager
def ferrogw(folder: Path, upstream: Server) -> Iterator[Server | None]:
    """Ferro Labs' gateway in Go, all stores in memory; None when it is not installed.

    It has no option for the address that it listens on, so it has a key.
    """
    executable = PEERS / "gateways" / "bin" / "ferrogw"
    if not executable.exists():
        yield None
        return
    port, config = free_port(), folder / "ferrogw.yaml"
    targets = [{"virtual_key": "openai"}]
    config.write_text(
        json.dumps({"strategy": {"mode": "fallback"}, "targets": targets})
    )
    origin = f"http://127.0.0.1:{upstream.port}"
    environment = os.environ | {
        "OPENAI_API_KEY": "sk-bench",
        "OPENAI_BASE_URL": origin,
        "GATEWAY_CONFIG": str(config),
        "MASTER_KEY": KEY,
        "LOG_LEVEL": "error",
        "RATE_LIMIT_RPS": "1000000",  # 20 without it
        "RATE_LIMIT_BURST": "1000000",
        "PORT": str(port),
    }
    command = (executable, "serve")
    with running(command, environment, folder / "ferrogw.log", port=port) as program:
        # It knows models by their names alone.
        yield Server("ferrogw", port, CHAT, BEARER, program, model="gpt-4o")
