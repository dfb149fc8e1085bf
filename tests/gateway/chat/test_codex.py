"""Codex works with /v1/responses, without a login."""

import json
import os
from pathlib import Path
from subprocess import DEVNULL

import pytest

from tests.docs.samples import sample
from tests.gateway.chat.agents import names_of, plan
from tests.tools import node_packages, output_of


@pytest.mark.slow
def test_codex_runs_its_loop_without_a_login(gateway, upstream, key, tmp_path):
    folder = node_packages(Path(__file__).parent / "codex")
    command = '{"cmd":"echo harbour-$((40+2))"}'
    upstream.script = plan(("exec_command", command))
    gateway.declare(name="large")
    home = tmp_path / "home"
    home.mkdir()
    text = sample("chat.md", "toml", "codex")
    text = text.replace("http://127.0.0.1:8000", gateway.url)
    (home / "config.toml").write_text(text)
    output = output_of(
        [
            *("node", str(folder / "node_modules/@openai/codex/bin/codex.js"), "exec"),
            *("--json", "--skip-git-repo-check", "Say hello"),
            "--dangerously-bypass-approvals-and-sandbox",
        ],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "CODEX_HOME": str(home),
            "SIGNPOST_KEY": key,
        },
        stdin=DEVNULL,
    )
    events = [json.loads(line) for line in output.splitlines()]
    items = [e["item"] for e in events if e["type"] == "item.completed"]
    (ran,) = (item for item in items if item["type"] == "command_execution")
    assert (ran["exit_code"], ran["aggregated_output"]) == (0, "harbour-42\n")
    assert items[-1]["text"] == "Hello"
    assert "exec_command" in names_of(upstream.requests[0].json)
    *_, answer = upstream.requests[-1].json["messages"]
    assert answer["tool_call_id"] == "functions.x:0"
    assert "harbour-42" in answer["content"]
