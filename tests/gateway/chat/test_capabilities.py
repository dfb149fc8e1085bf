"""What an endpoint supports, and which requests ask for it."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.chat.capabilities import CAPABILITIES
from gateway.configuration.shapes import SUPPORTS
from tests.gateway.chat.harness import REQUEST_ID, status_and_detail
from tests.gateway.chat.mock_upstream import COMPLETION, answers


def part_of_a_message(kind: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": kind}]}]}


@pytest.mark.parametrize(
    ("capability", "fields"),
    [
        ("tools", {"tools": [{"type": "function"}]}),
        ("tools", {"functions": [{"name": "tide"}]}),
        ("json_object", {"response_format": {"type": "json_object"}}),
        ("json_schema", {"response_format": {"type": "json_schema"}}),
        ("vision", part_of_a_message("image_url")),
        ("audio", part_of_a_message("input_audio")),
        ("audio", {"modalities": ["text", "audio"]}),
        ("audio", {"audio": {"voice": "alloy"}}),
        ("reasoning", {"reasoning_effort": "high"}),
        ("reasoning", {"reasoning": {"max_tokens": 2000}}),
        ("reasoning", {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
    ],
)
def test_what_is_asked_for_must_be_supported(gateway, upstream, capability, fields):
    gateway.declare(supports=frozenset({"streaming"}))
    response = gateway.post(headers=REQUEST_ID, **fields)
    assert status_and_detail(response) == (
        400,
        f"Endpoint does not support request: {capability}",
    )
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("supports", "fields"),
    [
        ({"tools"}, {"tools": [{"type": "function"}], "response_format": {"type": "text"}}),
        ({"json_object"}, {"response_format": {"type": "json_object"}}),
        (set(), {"tools": [], "functions": None, "response_format": None}),
        (set(), {"response_format": {"type": "text"}, "modalities": ["text"], "audio": None}),
        (set(), {"reasoning_effort": "none", "reasoning": None, "thinking": None}),
        (set(), {"thinking": {"type": "disabled"}, "modalities": "text"}),
        (set(), {"messages": [{"role": "user", "content": ["image_url", 5, None]}, 7]}),
        (set(), {"messages": "image_url", "reasoning_effort": None}),
    ],
)  # fmt: skip
def test_what_is_supported_or_not_asked_for_is_served(
    gateway, upstream, supports, fields
):
    gateway.declare(supports=frozenset(supports))
    upstream.script = answers(COMPLETION)
    assert gateway.post(**fields).status_code == 200


def test_every_value_of_supports_has_its_check():
    assert tuple(CAPABILITIES) == SUPPORTS
