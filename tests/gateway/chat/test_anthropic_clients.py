"""Anthropic's own clients read the gateway's answers, whatever kind of upstream gives them."""

import json
import os
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import anthropic
import pytest

from gateway.configuration.shapes import Target
from tests.gateway.chat import clients_matrix as matrix
from tests.gateway.chat.agents import names_of, plan
from tests.gateway.chat.harness import MESSAGES
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    answers,
)
from tests.tools import node_packages, output_of


@pytest.mark.parametrize("other", [None, "", "sk-ant-of-another"])
def test_a_bearer_token_decides_beside_another_key(gateway, upstream, key, other):
    """Claude Code sends both where it has both."""
    upstream.script = answers(COMPLETION)
    with anthropic.Anthropic(
        base_url=gateway.url,
        auth_token=key,
        default_headers={} if other is None else {"x-api-key": other or key},
        max_retries=0,
    ) as client:
        asked: Any = {"model": "small", "messages": MESSAGES}
        message = client.messages.create(max_tokens=64, **asked)
        assert message.content[0].text == "Hello"
        assert client.messages.count_tokens(**asked).input_tokens == 6


# ── Anthropic's client for Node, the AI SDK, and Claude Code ────────────────────────


@pytest.mark.slow
def test_the_clients_for_node_read_all_of_it(gateway, upstream, key):
    folder = node_packages(Path(__file__).parent / "node")
    upstream.script = matrix.answer
    for name in ("refusing", "broken", "tools"):
        gateway.declare(name=name, targets=(Target(upstream.url, name),))
    output = output_of(["node", "messages.mjs", gateway.url, key], cwd=folder)
    assert json.loads(output.splitlines()[-1]) == {
        "whole": "Hello",
        "streamed": "Hello",
        "tokens": 2,
        "broken": "Hel|true",
        "absent": {"status": 404, "kind": "NotFoundError"},
        "refused": {"status": 400, "kind": "BadRequestError"},
        "knows": ["BadRequestError", "NotFoundError"],
        "ai": ["Hello", "Hello", "Hello", 2],
    }


@pytest.mark.slow
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
