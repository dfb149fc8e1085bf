"""LiteLLM's proxy, in Python."""

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
def litellm(folder: Path, upstream: Server) -> Iterator[Server | None]:
    """LiteLLM's proxy, without a database; None when it is not installed."""
    executable = PEERS / "gateways" / "bin" / "litellm"
    if not executable.exists():
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
    command = (
        *(executable, "--config", config, "--host", "127.0.0.1"),
        *("--port", str(port), "--num_workers", "1"),
    )
    environment = os.environ | {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False",
        "LITELLM_LOG": "ERROR",
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_MASTER_KEY": KEY,
    }
    with running(command, environment, folder / "litellm.log", port=port) as program:
        yield Server("litellm", port, CHAT, BEARER, program)
