"""What an endpoint supports, and which requests ask for it."""

from typing import Any

import pytest

from gateway.chat.apis.messages.operation import MESSAGES
from gateway.chat.apis.openai.chat import CHAT
from gateway.chat.apis.responses.operation import RESPOND
from gateway.chat.capabilities import CAPABILITIES
from gateway.configuration.shapes import SUPPORTS
from tests.gateway.chat.apis.responses.harness import TIDE
from tests.gateway.chat.harness import V2
from tests.gateway.chat.mock_upstream import COMPLETION, answers

IMAGE = {"type": "input_image", "image_url": "http://x/a.png"}
PICTURE = {"type": "image", "source": {"type": "url", "url": "http://x/a.png"}}
THINKING = {"type": "enabled", "budget_tokens": 2000}


def said(*parts: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [*parts]}]


@pytest.mark.parametrize(
    ("operation", "needed", "body"),
    [
        (CHAT, "streaming", {"stream": True}),
        (CHAT, "tools", {"tools": [{"type": "function"}]}),
        (CHAT, "tools", {"functions": [{"name": "tide"}]}),
        (CHAT, "json_object", {"response_format": {"type": "json_object"}}),
        (CHAT, "json_schema", {"response_format": {"type": "json_schema"}}),
        (CHAT, "vision", {"messages": said({"type": "image_url"})}),
        (CHAT, "audio", {"messages": said({"type": "input_audio"})}),
        (CHAT, "audio", {"modalities": ["text", "audio"]}),
        (CHAT, "audio", {"audio": {"voice": "alloy"}}),
        (CHAT, "reasoning", {"reasoning_effort": "high"}),
        (CHAT, "reasoning", {"reasoning": {"max_tokens": 2000}}),
        (CHAT, "reasoning", {"thinking": THINKING}),
        (CHAT, "", {"tools": [], "functions": None, "response_format": {"type": "text"}}),
        (CHAT, "", {"stream": None, "modalities": ["text"], "audio": None}),
        (CHAT, "", {"reasoning_effort": "none", "reasoning": None, "thinking": {"type": "disabled"}}),
        (CHAT, "", {"messages": [{"role": "user", "content": ["image_url", 5, None]}, 7], "modalities": "audio"}),
        (CHAT, "", {"messages": "image_url", "reasoning_effort": None, "response_format": None}),
        (MESSAGES, "vision", {"messages": said({"type": "tool_result", "tool_use_id": "t", "content": [PICTURE]})}),
        (MESSAGES, "json_schema", {"output_config": {"format": {"type": "json_schema", "schema": {}}}}),
        (MESSAGES, "reasoning", {"thinking": THINKING}),
        (MESSAGES, "", {"thinking": {"type": "adaptive"}}),
        (RESPOND, "vision", {"input": said(IMAGE)}),
        (RESPOND, "vision", {"input": [{"type": "function_call_output", "call_id": "1", "output": [IMAGE]}]}),
        (RESPOND, "json_object", {"text": {"format": {"type": "json_object"}}}),
        (RESPOND, "reasoning", {"reasoning": {"effort": "low"}}),
        (RESPOND, "", {"reasoning": {"effort": "none"}}),
    ],
)  # fmt: skip
def test_what_a_request_asks_for(operation, needed, body):
    needs = [name for name, need in operation.capabilities.items() if need(body)]
    assert needs == [needed] * bool(needed)


@pytest.mark.spec("gateway", "synchronous: Endpoint does not support request, 400")
@pytest.mark.parametrize("path", [V2, "/v1/messages", "/v1/responses"])
def test_what_is_asked_for_must_be_supported(gateway, upstream, path):
    tool = TIDE if path == "/v1/responses" else {"name": "x", "input_schema": {}}
    upstream.script = answers(COMPLETION)
    gateway.declare(supports=frozenset({*CAPABILITIES} - {"tools"}))
    response = gateway.post(path=path, input="Hello", tools=[tool])
    assert response.status_code == 400
    text = "Endpoint does not support request: tools"
    if path == V2:
        assert response.json() == {"detail": text}
    assert f'"{text}"' in response.text
    assert upstream.requests == []
    gateway.declare(supports=frozenset({"tools"}))
    assert gateway.post(path=path, input="Hello", tools=[tool]).status_code == 200


def test_every_value_of_supports_has_its_check():
    assert tuple(CAPABILITIES) == SUPPORTS
