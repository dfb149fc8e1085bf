"""The request log: what is kept of requests of every shape, whole, streamed, left and failed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.chat.request_log.entry import EndedRequest, last_text, tool_names
from gateway.configuration.shapes import RequestLogSettings
from tests.gateway.chat.harness import (
    MESSAGES,
    STREAM_OR_NOT,
    V1,
    V2,
    Gateway,
)
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    STREAM,
    answers,
    greeting,
    sends,
)
from tests.gateway.chat.upstreams.anthropic_events import (
    MESSAGE,
    TEXT_STREAM,
    sends_events,
)

SMALL = RequestLogSettings(models=frozenset({"small", "claude", "vectors"}))
PROMPTS: dict[str, Any] = {
    V1: {"messages": MESSAGES},
    V2: {"messages": MESSAGES},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 5},
    "/v1/responses": {"input": "Say hello to the harbour"},
}
TOOL = {"type": "function", "function": {"name": "tide", "parameters": {}}}


@pytest.fixture
def gateway(gateway: Gateway) -> Gateway:
    gateway.change(request_log=SMALL)
    return gateway


def logged(gateway: Gateway) -> EndedRequest:
    assert gateway.settled(lambda: gateway.kept.logged)
    entry: EndedRequest
    (entry,) = gateway.kept.logged
    return entry


def text(entry: EndedRequest) -> str:
    return "".join(choice["text"] for choice in entry.answer)


@STREAM_OR_NOT
@pytest.mark.parametrize("path", PROMPTS)
def test_the_prompt_and_the_answer_of_every_shape_are_kept(
    gateway, upstream, path, stream
):
    upstream.script = greeting(stream=stream)
    body = {"model": "small", "stream": stream, **PROMPTS[path]}
    response = gateway.post(json.dumps(body), path=path)
    assert response.status_code == 200
    entry = logged(gateway)
    assert (entry.model, entry.error, entry.is_cut) == ("small", "", False)
    assert entry.prompt == body
    assert last_text(entry.prompt) == "Say hello to the harbour"
    assert text(entry) == "Hello"
    assert entry.answer[0]["finish_reason"]
    completed = entry.completed
    assert (completed.status, completed.tenant, completed.principal) == (
        200,
        "acme",
        "ada",
    )
    assert completed.upstream_model == "upstream-model"
    assert (completed.first_chunk_s is not None) == stream
    assert completed.usage is not None


@STREAM_OR_NOT
def test_messages_that_pass_as_they_are_are_kept_too(gateway, claude, upstream, stream):
    upstream.script = sends_events(*TEXT_STREAM) if stream else answers(MESSAGE)
    fields = {
        "model": "claude",
        "max_tokens": 5,
        "messages": MESSAGES,
        "stream": stream,
    }
    gateway.post(json.dumps(fields), path="/v1/messages")
    entry = logged(gateway)
    assert entry.operation == "messages"
    assert text(entry)


def test_a_stream_that_its_client_leaves_is_kept_up_to_there(gateway, upstream):
    never = asyncio.Event()
    upstream.script = sends(*STREAM[:2], never)
    with gateway.events() as events:
        assert next(events)["choices"]
        assert next(events)["choices"]
    entry = logged(gateway)
    assert (text(entry), entry.completed.status) == ("Hello", 499)


@STREAM_OR_NOT
def test_a_failed_request_is_kept_with_what_its_client_got(gateway, upstream, stream):
    upstream.script = answers({"error": {"message": "secret detail"}}, 500)
    detail = gateway.post(stream=stream).json()["detail"]
    entry = logged(gateway)
    assert (entry.error, entry.answer) == (detail, [])
    assert entry.completed.status == 500


def test_a_stream_that_breaks_is_kept_with_its_error(gateway, upstream):
    upstream.script = sends(*STREAM[:2], None)
    gateway.post(stream=True)
    entry = logged(gateway)
    assert text(entry) == "Hello"
    assert entry.completed.error_status == 500
    assert entry.error.startswith("Upstream service error")


def test_nothing_is_kept_of_other_models_and_of_what_has_no_text(gateway, upstream):
    gateway.declare(name="other")
    gateway.declare(name="vectors", inference_type="embedding")
    upstream.script = answers(COMPLETION)
    gateway.post(json.dumps({"model": "other", "messages": MESSAGES}))
    gateway.post(json.dumps({"model": "vectors", "input": "x"}), path="/v1/embeddings")
    body = {"model": "small", "messages": MESSAGES, "max_tokens": 5}
    gateway.post(json.dumps(body), path="/v1/messages/count_tokens")
    assert gateway.settled(lambda: len(gateway.kept.ended) == 3)
    assert gateway.kept.logged == []


def test_a_tenant_is_logged_for_every_model(gateway, upstream):
    settings = RequestLogSettings(tenants=frozenset({"acme"}), max_characters=1000)
    gateway.change(request_log=settings)
    gateway.declare(name="other")
    upstream.script = answers(COMPLETION)
    content = [
        {"role": "user", "content": "old " * 300},
        {"role": "user", "content": "new"},
    ]
    gateway.post(json.dumps({"model": "other", "messages": content}))
    entry = logged(gateway)
    assert entry.is_cut
    assert entry.prompt["messages"][1] == content[1]
    assert "characters cut]" in entry.prompt["messages"][0]["content"]


def test_tools_are_kept_by_their_names_alone(gateway, upstream):
    upstream.script = answers(COMPLETION)
    gateway.post(tools=[TOOL], headers={"Authorization": "Bearer "})
    gateway.post(tools=[TOOL])
    entry = logged(gateway)
    assert entry.tools == ["tide"]
    assert "tools" not in entry.prompt


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (
            {"tools": [TOOL, {"name": "Bash"}, {"type": "web_search"}]},
            ["tide", "Bash", "web_search"],
        ),
        ({"functions": [{"name": "old"}], "tools": None}, ["old"]),
        ({"tools": [1, {}, {"function": 5}, {"name": 5}]}, []),
        ({"tools": {"name": "x"}}, []),
    ],
)
def test_the_tools_of_every_shape_have_names(body: dict[str, Any], names: list[str]):
    assert list(tool_names(body)) == names


@pytest.mark.parametrize(
    ("prompt", "excerpt"),
    [
        (
            {"messages": [{"content": [{"text": "a"}, {"type": "text", "text": "b"}]}]},
            "b",
        ),
        ({"input": [{"type": "function_call_output", "output": "5"}]}, "5"),
        ({"prompt": ["a", "b"]}, "b"),
        ({"messages": 5}, ""),
        ({}, ""),
    ],
)
def test_the_last_text_of_a_prompt(prompt: dict[str, Any], excerpt: str):
    assert last_text(prompt) == excerpt
