"""Agents run their loops of tools: Claude Code and Codex, each without a login."""

import json
import os
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import pytest

from tests.docs.samples import sample
from tests.gateway.chat.mock_upstream import (
    DONE,
    USAGE_CHUNK,
    WHOLE_STREAM,
    Received,
    calling,
    chunk,
    event,
    sends,
)
from tests.tools import node_packages, output_of

pytestmark = pytest.mark.slow


def plan(*steps: tuple[str, str]) -> Any:
    """Answer a request with the call that follows the results so far, at last with text."""

    async def script(request: Received) -> None:
        done = sum(turn["role"] == "tool" for turn in request.json["messages"])
        if done == len(steps):
            await sends(*WHOLE_STREAM)(request)
            return
        name, arguments = steps[done]
        function = {"name": name, "arguments": arguments}
        call = {"index": 0, "id": f"functions.x:{done}", "function": function}
        end = event(chunk(finish="tool_calls"))
        await sends(calling(call), end, event(USAGE_CHUNK), DONE)(request)

    return script


def names_of(body: Any) -> set[str]:
    return {tool["function"]["name"] for tool in body["tools"]}


def test_claude_code_runs_its_loop_without_a_login(gateway, upstream, key, tmp_path):
    folder = node_packages(Path(__file__).parent / "claude_code")
    # Its program is one of several packages, by the machine.
    programs = folder.glob("node_modules/@anthropic-ai/claude-code-*/claude")
    program = next(programs, None)
    if program is None:
        pytest.skip("Claude Code's package has no program for this machine")
    upstream.script = plan(
        # A tool that it defers, which its own search makes known.
        ("ToolSearch", '{"query":"select:CronList"}'),
        ("CronList", "{}"),
        ("Bash", '{"command":"echo harbour-$((40+2))"}'),
    )
    gateway.declare(name="claude-large")
    output = output_of(
        [
            *(str(program), "-p", "Say hello", "--model", "claude-large"),
            *("--output-format", "json", "--allowedTools", "Bash"),
        ],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "ANTHROPIC_BASE_URL": gateway.url,
            "ANTHROPIC_AUTH_TOKEN": key,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        },
        stdin=DEVNULL,
    )
    result = json.loads(output)
    assert (result["result"], result["num_turns"]) == ("Hello", 4)
    *_, answer = upstream.requests[-1].json["messages"]
    assert answer["tool_call_id"] == "functions.x:2"
    assert answer["content"] == "harbour-42"
    offered = [names_of(request.json) for request in upstream.requests]
    assert ["CronList" in names for names in offered] == [False, True, True, True]
    # Each round is one of its own, since no two messages have the same id.
    turns = upstream.requests[-1].json["messages"]
    assert [turn["role"] for turn in turns][-6:] == ["assistant", "tool"] * 3
    # A refused request would be repeated without what the gateway does not know.
    assert {context.status for context in gateway.kept.ended} == {200}
    sessions = {context.session for context in gateway.kept.ended}
    assert sessions == {result["session_id"]}


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
