"""Calls made up from the OpenAPI document: chat's answers keep to it and are no 5xx."""

from __future__ import annotations

from copy import deepcopy
from itertools import product
from typing import Any

import pytest
import requests
import schemathesis

from gateway.chat.openapi_shapes import CHATS, MESSAGES, RESPONSES
from gateway.configuration.shapes import Target
from tests.documented import assert_response_documented
from tests.fuzzing import DOCUMENT, assert_as_described, bounded
from tests.gateway.chat.harness import IDENTITY
from tests.gateway.chat.mock_upstream import STREAM, sends
from tests.running import PATIENCE_S


def _with_existing(document: Any) -> Any:
    """Return the document with the models of the test among those that calls name."""
    schemas = document["components"]["schemas"]
    embed = document["paths"]["/v1/embeddings"]["post"]["requestBody"]
    for shape, name in (
        (schemas["GatewayChatRequest"], "echo"),
        (schemas["GatewayMessagesRequest"], "echo"),
        (schemas["GatewayResponsesRequest"], "echo"),
        (embed["content"]["application/json"]["schema"], "vectors"),
    ):
        names = [{"const": name}, {"type": "string"}]
        shape["properties"]["model"] = {"anyOf": names}
    return document


CHAT = schemathesis.openapi.from_dict(_with_existing(deepcopy(DOCUMENT))).include(
    path_regex=r"^/(v2/chat|v1/(chat|embeddings|messages|models|responses))"
)


@pytest.mark.slow
@CHAT.parametrize()
@bounded
@pytest.mark.timeout(300)
def test_a_response_is_as_documented(case, gateway):
    for name, kind in (("echo", "chat"), ("vectors", "embedding")):
        target = Target("", "echo-0ms")
        gateway.declare(
            name=name, upstream="echo", inference_type=kind, targets=(target,)
        )
    case.headers.pop("Authorization", None)  # made up: it would decide alone
    assert_as_described(case, base_url=gateway.url, headers=IDENTITY)


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
