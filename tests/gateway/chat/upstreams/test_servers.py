"""What each server gets: its address, its headers, and the fields that it knows by other names."""

import json
from typing import Any

import pytest

from gateway.configuration.shapes import Target
from tests.gateway.chat.harness import MESSAGES, V1
from tests.gateway.chat.mock_upstream import COMPLETION, answers, greeting
from tests.gateway.chat.upstreams.anthropic_events import MESSAGE

BEARER = {
    "authorization": "Bearer k",
    "x-request-id": "r",
    "user-agent": "Signpost",
    "accept-encoding": "identity",
}
DEPLOYED = "/v1/openai/deployments/a%2Fb/chat/completions?api-version="


@pytest.mark.parametrize(
    ("entry", "path", "headers"),
    [
        ({}, V1, BEARER),
        ({"api_version": "1"}, f"{V1}?api-version=1", BEARER),
        ({"server": "azure"}, f"{DEPLOYED}2024-10-21", {"api-key": "k"}),
        ({"server": "azure", "api_version": "1"}, f"{DEPLOYED}1", {"api-key": "k"}),
        ({"upstream": "anthropic"}, "/v1/messages", {"x-api-key": "k", "anthropic-version": "2023-06-01"}),
        ({"extra_headers": {"X-Team": "t", "authorization": "other"}}, V1, {"x-team": "t", "authorization": "other"}),
    ],
)  # fmt: skip
def test_a_call_goes_to_the_servers_own_address(
    gateway, upstream, entry, path, headers
):
    answer = MESSAGE if "upstream" in entry else COMPLETION
    upstream.script = answers(answer, request_id="theirs")
    # What surrounds a key in a file or a variable is none of it.
    target = Target(f"{upstream.url}/", "a/b", " k\n")
    gateway.declare(targets=(target,), **entry)
    response = gateway.post(headers={"X-Request-Id": "r"})
    assert response.status_code == 200
    assert "request-id" not in response.headers  # that is for clients of its own API
    sent = upstream.requests[0]
    assert sent.path == path
    assert {name: sent.headers[name] for name in headers} == headers
    assert sent.headers["content-type"] == "application/json"


ASKED = {"seed": 7, "max_completion_tokens": 9}
USAGE = {"stream_options": {"include_usage": True}}


@pytest.mark.parametrize(
    ("entry", "fields"),
    [
        ({}, {**ASKED, **USAGE}),
        ({"stream_usage": False}, ASKED),
        ({"server": "mistral"}, {"random_seed": 7, "max_tokens": 9}),
        ({"server": "ollama"}, {"seed": 7, "max_tokens": 9, **USAGE}),
        ({"drop_params": ("seed",)}, {"max_completion_tokens": 9, **USAGE}),
        ({"extra_body": {"seed": 8, "x": 1}}, {**ASKED, "seed": 8, "x": 1, **USAGE}),
    ],
)
def test_a_server_gets_the_fields_that_it_knows(gateway, upstream, entry, fields):
    upstream.script = greeting(stream=True)
    gateway.declare(**entry)
    gateway.stream(**ASKED)
    body = upstream.requests[0].json
    names = {"model": "upstream-model", "messages": MESSAGES, "stream": True}
    assert body == names | fields


@pytest.mark.parametrize(("server", "name"), [("azure", "max_completion_tokens"), ("openai", "max_tokens")])  # fmt: skip
def test_openai_gets_the_new_name_of_a_limit(gateway, upstream, server, name):
    upstream.script = answers(COMPLETION)
    gateway.declare(server=server)
    body: dict[str, Any] = {"model": "small", "max_tokens": 9, "messages": MESSAGES}
    answer = gateway.post(json.dumps(body), path="/v1/messages")
    assert answer.status_code == 200
    assert upstream.requests[0].json[name] == 9
