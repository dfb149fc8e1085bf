"""Anthropic's own clients read the gateway's answers, whatever kind of upstream gives them."""

import json
from pathlib import Path
from typing import Any

import anthropic
import pytest

from gateway.configuration.shapes import Target
from tests.gateway.chat import clients_matrix as matrix
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


# ── Anthropic's client for Node, and the AI SDK ─────────────────────────────────────


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
