"""Chat's examples of the OpenAPI document work, and its streams keep to it."""

from __future__ import annotations

from itertools import product

import pytest
import requests

from gateway.chat.openapi_shapes import CHATS, MESSAGES, RESPONSES
from gateway.configuration.shapes import Target
from tests.documented import assert_response_documented
from tests.gateway.chat.harness import IDENTITY
from tests.gateway.chat.mock_upstream import STREAM, sends
from tests.running import PATIENCE_S


@pytest.mark.parametrize(
    ("path", "example"),
    [
        *product(("/v1/chat/completions", "/v2/chat/completions"), CHATS.values()),
        *product(("/v1/messages",), MESSAGES.values()),
        *product(("/v1/responses",), RESPONSES.values()),
    ],
)
def test_an_example_works_when_sent(path, example, gateway):
    target = Target("", "echo-0ms")
    gateway.declare(
        name="echo", upstream="echo", inference_type="chat", targets=(target,)
    )
    response = requests.post(
        gateway.url + path, json=example, headers=IDENTITY, timeout=PATIENCE_S
    )
    assert response.status_code == 200
    kind = "text/event-stream" if example.get("stream") else "application/json"
    assert response.headers["Content-Type"].startswith(kind)
    assert "ferries?" in response.text
    assert_response_documented(response)


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v2/chat/completions", "/v1/messages"]
)
def test_every_event_of_a_stream_that_breaks_is_documented(path, gateway, upstream):
    gateway.declare()
    upstream.script = sends(STREAM[0], b"data: nonsense\n\n")
    response = gateway.post(path=path, stream=True)
    assert b"error" in response.content.split(b"data: ")[-1]
    assert_response_documented(response)
