"""/v1/responses by the clients of OpenAI, and at upstreams of every kind."""

from typing import Any

from tests.gateway.chat.apis.responses.harness import (
    PATCH,
    PATH,
    answer,
)
from tests.gateway.chat.harness import IDENTITY
from tests.gateway.chat.mock_upstream import (
    USAGE,
    WHOLE_STREAM,
    answers,
    sends,
)


def test_a_completion_without_usage_or_with_parts_is_answered(gateway, upstream):
    text = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    call_ = {"id": "1", "function": {"name": "apply_patch", "arguments": "raw text"}}
    message = {"content": text, "refusal": "no", "tool_calls": [call_]}
    upstream.script = answers({"choices": [{"message": message}]})
    response = answer(gateway, tools=[PATCH])
    said, made = response["output"]
    assert [part["type"] for part in said["content"]] == ["output_text", "refusal"]
    assert said["content"][0]["text"] == "Hello"
    assert made["input"] == "raw text"
    # Clients need numbers: they are estimates, as in the record.
    assert response["usage"]["input_tokens"] > 0
    assert response["usage"]["output_tokens"] > 0
    broken: list[list[Any]] = [[], [5], [{}], [{"message": 5}]]
    for choices in broken:
        upstream.script = answers({"choices": choices, "usage": USAGE})
        assert answer(gateway)["output"] == []


def test_a_client_that_leaves_after_the_last_event_got_everything(gateway, upstream):
    """Codex does so: it does not wait for the end of the body."""
    upstream.script = sends(*WHOLE_STREAM, 3600.0)
    with gateway.opened(PATH, input="Hello", messages=None) as response:
        lines = response.iter_lines(1)
        assert any(line == b"event: response.completed" for line in lines)
    assert gateway.recorded().status == 200


def test_a_request_for_a_websocket_is_answered_at_once(gateway):
    lines = [
        *(f"GET {PATH} HTTP/1.1", "Host: localhost", "Connection: Upgrade"),
        *("Upgrade: websocket", "Sec-WebSocket-Version: 13"),
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        *(f"{name}: {value}" for name, value in IDENTITY.items()),
    ]
    with gateway.connected("\r\n".join([*lines, "", ""]).encode()) as connection:
        head = connection.recv(65_536)
    assert head.startswith(b"HTTP/1.1 405 ")
    assert b"allow: post" in head.lower()
