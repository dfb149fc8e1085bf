"""What requests of the Responses API are refused for, by name, and what endpoints leave out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.chat.mock_upstream import COMPLETION, answers
from tests.gateway.chat.operations.responses.harness import (
    PATCH,
    TIDE,
    answer,
    create,
)
from tests.gateway.chat.operations.responses.test_request import (
    FUNCTION,
    UNSUPPORTED,
)

STATEFUL: list[tuple[dict[str, Any], str]] = [
    ({"previous_response_id": "resp_1"}, "previous_response_id"),
    ({"conversation": "conv_1"}, "conversation"),
    ({"store": True}, "store: true"),
    ({"background": True}, "background: true"),
    ({"prompt": {"id": "p"}}, "prompt"),
    ({"truncation": "auto"}, "truncation"),
    ({"tools": [{"type": "web_search"}]}, "tools of the type web_search"),
    ({"tools": [{"type": "mcp", "server_label": "x"}]}, "tools of the type mcp"),
    ({"tool_choice": {"type": "file_search"}}, "tool_choice of the type file_search"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input of the type item_reference"),
    ({"input": [{"type": "web_search_call", "id": "x"}]}, "input of the type web_search_call"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}, "input_image: file_id"),
    ({"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "f"}]}]}, "input_file: file_url"),
    ({"input": [{"role": "critic", "content": "x"}]}, "the role critic"),
]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("fields", "what"), STATEFUL)
def test_what_needs_a_memory_is_refused_by_name(
    gateway, upstream, fields, what, stream
):
    response = create(gateway, stream=stream, **fields)
    assert response.status_code == 400
    assert response.json()["error"] == {
        "message": UNSUPPORTED + what,
        "type": "invalid_request_error",
        "param": None,
        "code": None,
    }
    assert not upstream.requests


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "tide"}])
def test_without_tools_none_can_be_required(gateway, upstream, choice):
    upstream.script = answers(COMPLETION)
    response = create(gateway, tool_choice=choice, tools=[])
    assert response.status_code == 400
    assert response.json()["error"]["message"] == "tool_choice: there are no tools."
    assert not upstream.requests
    for harmless in ("auto", "none", None):
        answer(gateway, tool_choice=harmless)


def test_a_tolerant_endpoint_leaves_hosted_tools_and_storing_out(gateway, upstream):
    upstream.script = answers(COMPLETION)
    gateway.declare(drop_params=True)
    answer(gateway, store=True, tools=[{"type": "web_search"}, TIDE])
    body = upstream.requests[0].json
    assert body["tools"] == [FUNCTION]
    assert "store" not in body
    assert create(gateway, previous_response_id="resp_1").status_code == 400
    gateway.declare(drop_params=("previous_response_id", "text"))
    answer(gateway, previous_response_id="resp_1", text={"verbosity": "low"})
    assert upstream.requests[1].json.keys() == {"model", "messages"}


@pytest.mark.parametrize(
    "fields",
    [
        {"input": 5},
        {"input": None},
        {"input": [5]},
        {"input": [{}]},
        {"input": [{"type": 5}]},
        {"input": [{"role": "user", "content": 5}]},
        {"input": [{"role": "user", "content": [5]}]},
        {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
        {"input": [{"type": "function_call", "call_id": "x"}]},
        {"input": [{"type": "function_call", "call_id": "x", "name": "y"}]},
        {"input": [{"type": "custom_tool_call", "call_id": "x", "name": "y"}]},
        {"input": [{"type": "function_call_output", "output": "y"}]},
        {"instructions": ["x"]},
        {"tools": {}},
        {"tools": ["x"]},
        {"tools": [{"type": "function"}]},
        {"tools": [TIDE, TIDE]},
        {"tools": [{**PATCH, "format": {"type": "grammar"}}]},
        {"tool_choice": "x"},
        {"tool_choice": {"type": "function"}},
        {"reasoning": "low"},
        {"text": "x"},
        {"text": {"format": "x"}},
        {"text": {"format": {"type": "json_schema"}}},
        {"include": "x"},
    ],
)  # fmt: skip
def test_what_is_malformed_is_refused(gateway, upstream, fields):
    for stream in (False, True):
        response = create(gateway, stream=stream, **fields)
        assert response.status_code == 400, fields
        assert response.json()["error"]["type"] == "invalid_request_error"
    assert not upstream.requests
