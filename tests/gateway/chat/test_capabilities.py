"""What an endpoint supports, and which requests ask for it."""

from typing import Any

import pytest

from gateway.chat.capabilities import CAPABILITIES
from gateway.configuration.shapes import SUPPORTS
from tests.gateway.chat.apis.responses.harness import TIDE
from tests.gateway.chat.harness import V2
from tests.gateway.chat.mock_upstream import COMPLETION, answers

V1_MESSAGES, V1_RESPONSES = "/v1/messages", "/v1/responses"
IMAGE = {"type": "input_image", "image_url": "http://x/a.png"}
PICTURE = {"type": "image", "source": {"type": "url", "url": "http://x/a.png"}}


def said(*parts: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [*parts]}]


@pytest.mark.spec("gateway", "synchronous: Endpoint does not support request, 400")
@pytest.mark.parametrize(
    ("path", "capability", "fields"),
    [
        (V2, "tools", {"tools": [{"type": "function"}]}),
        (V2, "tools", {"functions": [{"name": "tide"}]}),
        (V2, "json_object", {"response_format": {"type": "json_object"}}),
        (V2, "json_schema", {"response_format": {"type": "json_schema"}}),
        (V2, "vision", {"messages": said({"type": "image_url"})}),
        (V2, "audio", {"messages": said({"type": "input_audio"})}),
        (V2, "audio", {"modalities": ["text", "audio"]}),
        (V2, "audio", {"audio": {"voice": "alloy"}}),
        (V2, "reasoning", {"reasoning_effort": "high"}),
        (V2, "reasoning", {"reasoning": {"max_tokens": 2000}}),
        (V2, "reasoning", {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        (V1_MESSAGES, "streaming", {"stream": True}),
        (V1_MESSAGES, "tools", {"tools": [{"name": "x", "input_schema": {}}]}),
        (V1_MESSAGES, "vision", {"messages": said({"type": "tool_result", "tool_use_id": "t", "content": [PICTURE]})}),
        (V1_MESSAGES, "json_schema", {"output_config": {"format": {"type": "json_schema", "schema": {}}}}),
        (V1_MESSAGES, "json_schema", {"output_format": {"type": "json_schema", "schema": {}}}),
        (V1_MESSAGES, "reasoning", {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        (V1_RESPONSES, "streaming", {"stream": True}),
        (V1_RESPONSES, "tools", {"tools": [TIDE]}),
        (V1_RESPONSES, "vision", {"input": said(IMAGE)}),
        (V1_RESPONSES, "vision", {"input": [{"type": "function_call_output", "call_id": "1", "output": [IMAGE]}]}),
        (V1_RESPONSES, "audio", {"input": said({"type": "input_audio", "input_audio": {}})}),
        (V1_RESPONSES, "json_object", {"text": {"format": {"type": "json_object"}}}),
        (V1_RESPONSES, "json_schema", {"text": {"format": {"type": "json_schema", "schema": {}}}}),
        (V1_RESPONSES, "reasoning", {"reasoning": {"effort": "low"}}),
    ],
)  # fmt: skip
def test_what_is_asked_for_must_be_supported(
    gateway, upstream, path, capability, fields
):
    if path == V1_RESPONSES:
        fields = {"input": "Hello", "messages": None, **fields}
    upstream.script = answers(COMPLETION)
    gateway.declare(supports=frozenset({*CAPABILITIES} - {capability}))
    response = gateway.post(path=path, **fields)
    assert response.status_code == 400
    text = f"Endpoint does not support request: {capability}"
    if path == V2:
        assert response.json() == {"detail": text}
    assert f'"{text}"' in response.text
    assert upstream.requests == []
    gateway.declare(supports=frozenset({capability}))
    if capability != "streaming":
        assert gateway.post(path=path, **fields).status_code == 200


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
