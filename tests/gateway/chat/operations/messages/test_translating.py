"""Messages for upstreams of OpenAI's kind: whole answers, errors, tokens, and what entries change."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from anthropic.lib.streaming._messages import accumulate_event

from gateway.chat.operations.messages import translating
from gateway.chat.request import ModelRequest
from gateway.chat.upstreams.base import Job
from gateway.configuration.shapes import ModelEntry, Target
from tests.gateway.chat.harness import NOT_FOUND, STREAM_OR_NOT, named_events_of
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    USAGE,
    WHOLE_STREAM,
    answers,
    event,
    greeting,
    sends,
)
from tests.gateway.chat.operations.messages.test_oracle import EVENT, adapter
from tests.gateway.chat.upstreams.anthropic_events import MESSAGE


def completion(**message: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {**COMPLETION, "choices": [choice]}


def test_a_completion_becomes_a_message(small, upstream, gateway):
    upstream.script = answers(COMPLETION)
    response = small(headers={"X-Request-Id": "req-7"})
    assert response.headers["request-id"] == "req-7"
    message = response.json()
    assert message.pop("id").startswith("msg_")
    assert message == {
        "type": "message",
        "role": "assistant",
        "model": "small",
        "content": [{"type": "text", "text": "Hello"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 9,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 2,
        },
    }
    sent = upstream.requests[0]
    assert sent.path == "/v1/chat/completions"
    assert sent.json["model"] == "upstream-model"
    assert "anthropic-version" not in sent.headers
    assert gateway.recorded().usage.prompt_tokens == 9


@STREAM_OR_NOT
def test_no_two_messages_have_one_id(small, upstream, stream):
    """Some servers have few ids, and Claude Code merges messages with the same one."""
    upstream.script = greeting(stream=stream)
    found = re.findall(
        r'"id":"(msg_[0-9a-f]+)"', "".join(small(stream=stream).text for _ in "ab")
    )
    assert len(set(found)) == 2


@pytest.mark.parametrize(
    ("message", "blocks"),
    [
        ({"content": None}, []),
        ({"content": [{"type": "text", "text": "a"}, {"type": "x"}], "refusal": "No."}, [{"type": "text", "text": "a"}, {"type": "text", "text": "No."}]),
        ({"reasoning": "Hm.", "content": "a"}, [{"type": "thinking", "thinking": "Hm.", "signature": "signpost:reasoning"}, {"type": "text", "text": "a"}]),
        (
            {"reasoning_content": "Hm.", "thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln", "index": 0}, 5]},
            [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}],
        ),
        (
            {"content": "", "tool_calls": [{"id": "call_1", "function": {"name": "tide", "arguments": '{"at": 1.0}'}}, {}, 5]},
            [{"type": "tool_use", "id": "toolu_call_1", "name": "tide", "input": {"at": 1.0}}],
        ),
        (
            {"tool_calls": [{"id": "call_1", "function": {"name": "tide", "arguments": text}} for text in ("", '{"a"', None)]},
            [{"type": "tool_use", "id": key, "name": "tide", "input": {}} for key in ("toolu_call_1", "toolu_n1_Y2FsbF8x", "toolu_n2_Y2FsbF8x")],
        ),
    ],
)  # fmt: skip
def test_what_a_message_holds_becomes_blocks(small, upstream, message, blocks):
    upstream.script = answers(completion(**message))
    assert small().json()["content"] == blocks


@pytest.mark.spec("claude-code", "its loop of tools works")
def test_a_call_and_its_result_go_back_under_the_upstreams_own_id(small, upstream):
    call = {"id": "functions.tide:0", "function": {"name": "tide", "arguments": "{}"}}
    upstream.script = answers(completion(content=None, tool_calls=[call]))
    ask = {"role": "user", "content": "When?"}
    first = small(messages=[ask]).json()
    assert first["stop_reason"] == "tool_use"
    (block,) = first["content"]
    result = {"type": "tool_result", "tool_use_id": block["id"], "content": "low"}
    said = {"role": "assistant", "content": first["content"]}
    second = small(messages=[ask, said, {"role": "user", "content": [result]}]).json()
    *_, asked, answered = upstream.requests[-1].json["messages"]
    assert (
        asked["tool_calls"][0]["id"] == answered["tool_call_id"] == "functions.tide:0"
    )
    assert second["content"][0]["id"] != block["id"]


def test_thinking_goes_back_to_the_server_that_sent_it(small, upstream):
    upstream.script = answers(completion(content="a", reasoning_content="Hm."))
    turn = {"role": "assistant", "content": small().json()["content"]}
    small(
        messages=[
            {"role": "user", "content": "x"},
            turn,
            {"role": "user", "content": "y"},
        ]
    )
    _, said, _ = upstream.requests[-1].json["messages"]
    assert said == {"role": "assistant", "content": "a", "reasoning_content": "Hm."}


CALL = {"id": "a", "type": "function", "function": {"name": "tide", "arguments": "{}"}}
SIGNED = {"google": {"thought_signature": "c2ln"}}
DETAIL = {"type": "reasoning.encrypted", "data": "c2ln"}


@STREAM_OR_NOT
@pytest.mark.parametrize(
    "said",
    [
        # Gemini refuses a call without its signature, OpenRouter one without its details.
        {"tool_calls": [{**CALL, "extra_content": SIGNED}]},
        {"tool_calls": [CALL], "reasoning_details": [DETAIL]},
    ],
)
def test_what_a_server_signed_goes_back_to_it_alone(
    small, upstream, gateway, stream, said
):
    choice = {"index": 0, "delta": said, "finish_reason": "tool_calls"}
    chunk = {"choices": [choice], "usage": USAGE}
    upstream.script = sends(event(chunk)) if stream else answers(completion(**said))
    response = small(stream=stream)
    content = content_of(response.content) if stream else response.json()["content"]
    result = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": ""}
    turns = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": content},
        {"role": "user", "content": [result]},
    ]
    upstream.script = answers(COMPLETION)
    gateway.declare("other")
    for name in ("small", "other"):
        assert small(model=name, messages=turns).status_code == 200
    there, other = (each.json["messages"] for each in upstream.requests[-2:])
    assert there[1] == {"role": "assistant", "content": None, **said}
    assert other[1] == {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert there[2]["tool_call_id"] == other[2]["tool_call_id"] == "a"


def content_of(stream: bytes) -> list[dict[str, Any]]:
    """Return the blocks of a stream as the API's own client builds them."""
    snapshot, buffers = None, dict[Any, Any]()
    for each in named_events_of(stream):
        value = adapter(EVENT).validate_python(each)
        snapshot = accumulate_event(
            event=value, current_snapshot=snapshot, json_bufs=buffers
        )
    assert snapshot is not None
    return [block.model_dump(exclude_none=True) for block in snapshot.content]


def test_usage_that_is_not_reported_is_estimated(small, upstream, gateway):
    upstream.script = answers({**completion(content="12345678"), "usage": None})
    assert small().json()["usage"]["output_tokens"] == 2


@pytest.mark.parametrize(
    ("url", "server", "name"),
    [
        ("https://api.openai.com/v1", "openai", "max_completion_tokens"),
        ("https://x.openai.azure.com/v1", "openai", "max_completion_tokens"),
        ("https://x.cognitiveservices.azure.com", "azure", "max_completion_tokens"),
        ("https://x.example/openai/v1", "azure-v1", "max_completion_tokens"),
        ("https://evil-api.openai.com.example/v1", "openai", "max_tokens"),
        ("http://127.0.0.1/v1", "openai", "max_tokens"),
        ("http://127.0.0.1/v1", "vllm", "max_tokens"),
    ],
)
def test_openai_gets_its_own_name_of_the_limit(url, server, name):
    body = {"model": "small", "max_tokens": 5, "messages": []}
    target = Target(url, "there")
    entry = ModelEntry("small", "openai", (target,), server=server)
    job = Job(ModelRequest("small", False, body), target, entry, "r")
    assert translating._body(job)[0] == {name: 5, "messages": [], "model": "small"}


# ── Errors ──────────────────────────────────────────────────────────────────────────


@pytest.mark.spec(
    "claude-code",
    "what is too long is recognized by its wording",
    "retry-after: whole seconds",
)
@STREAM_OR_NOT
@pytest.mark.parametrize(
    ("answer", "status", "expected", "kind", "message"),
    [
        ({"error": {"message": "no"}}, 400, 400, "invalid_request_error", "no"),
        ({"error": {"message": "no"}}, 422, 400, "invalid_request_error", "no"),
        ({"error": {"message": "slow down"}}, 429, 429, "rate_limit_error", None),
        ({"error": {"message": "secret"}}, 401, 500, "api_error", None),
        ({}, 503, 500, "api_error", None),
        (
            {"error": {"message": "Too many tokens.", "code": "context_length_exceeded"}},
            400, 400, "invalid_request_error", "prompt is too long: Too many tokens.",
        ),
        (
            {"error": {"message": "prompt is too long: 9 > 5"}},
            400, 400, "invalid_request_error", "prompt is too long: 9 > 5",
        ),
    ],
)  # fmt: skip
def test_errors_have_anthropics_shape(
    small, upstream, stream, answer, status, expected, kind, message
):
    upstream.script = answers(answer, status, Retry_After="7")
    response = small(stream=stream)
    assert response.status_code == expected
    error = response.json()
    assert (error["type"], error["error"]["type"]) == ("error", kind)
    assert message in {None, error["error"]["message"]}
    assert "secret" not in response.text
    assert ("Retry-After" in response.headers) == (status == 429)
    # What the operator must mend is not worth another try.
    retry = response.headers.get("x-should-retry")
    assert retry == ("false" if status == 401 else None)


def test_a_request_that_is_refused_never_reaches_the_upstream(small, upstream, gateway):
    for fields, status, message in (
        ({"model": "absent"}, 404, NOT_FOUND),
        ({"model": 5}, 400, "model: must be a non-empty string."),
        ({"tools": [{"type": "web_search_20250305", "name": "w"}]}, 400, "Endpoint does not support request: tools of the type web_search_20250305"),
        ({"messages": 5}, 400, "messages: must be a list."),
        ({"headers": {"Content-Type": "text/plain"}}, 415, "The body's Content-Type is not supported."),
        ({"headers": {"X-Forwarded-For": "10.0.0.1"}}, 401, "Identity headers are accepted from trusted proxies only."),
    ):  # fmt: skip
        for stream in (False, True):
            response = small(stream=stream, **fields)
            assert response.status_code == status
            assert response.json()["error"]["message"] == message
            assert response.headers["request-id"] == response.headers["X-Request-Id"]
    assert upstream.requests == []
    assert gateway.kept.denied == [("messages", "absent")] * 2


@pytest.mark.spec(
    "claude-code",
    "thinking of type adaptive, and an effort",
    "output_config",
)
def test_an_effort_is_a_wish_and_no_demand(small, gateway, upstream):
    """Claude Code sends one with every request."""
    upstream.script = answers(COMPLETION)
    fields = {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}}
    small(**fields)
    assert upstream.requests[-1].json["reasoning_effort"] == "high"
    gateway.declare(supports=frozenset({"tools"}))
    assert small(**fields).status_code == 200
    assert "reasoning_effort" not in upstream.requests[-1].json


# ── Entries ─────────────────────────────────────────────────────────────────────────


def test_fields_that_an_entry_drops_are_left_out(small, gateway, upstream):
    upstream.script = answers(COMPLETION)
    fields = {"inference_geo": "eu", "top_k": 5, "output_config": {"task_budget": 5}}
    assert small(**fields).status_code == 400
    gateway.declare(drop_params=True)
    assert small(**fields).status_code == 200
    gateway.declare(drop_params=("inference_geo", "output_config", "top_k"))
    assert small(**fields).status_code == 200
    assert "top_k" not in upstream.requests[-1].json
    gateway.declare(extra_body={"reasoning_effort": "none"})
    assert small().status_code == 200
    assert upstream.requests[-1].json["reasoning_effort"] == "none"


@STREAM_OR_NOT
def test_another_kind_of_upstream_can_take_over(
    gateway, small, claude, upstream, stream
):
    target = Target(upstream.url, "claude-there", "sk-ant")
    gateway.declare(
        name="claude", upstream="anthropic", targets=(target,), fallbacks=("small",)
    )

    async def script(request: Any) -> None:
        if request.path == "/v1/messages":
            await answers(
                {"type": "error", "error": {"type": "overloaded_error"}}, 529
            )(request)
        elif stream:
            await sends(*WHOLE_STREAM)(request)
        else:
            await answers(COMPLETION)(request)

    upstream.script = script
    response = claude(stream=stream)
    assert response.status_code == 200
    assert b"Hel" in response.content
    assert b'"model":"claude"' in response.content
    assert response.headers["X-Signpost-Model"] == "small"
    assert [each.path for each in upstream.requests] == [
        "/v1/messages",
        "/v1/chat/completions",
    ]


def test_extra_fields_of_an_entry_reach_its_own_kind_of_upstream(
    gateway, claude, upstream
):
    upstream.script = answers(MESSAGE)
    target = Target(upstream.url, "claude-there", "sk-ant")
    gateway.declare(
        name="claude",
        upstream="anthropic",
        targets=(target,),
        extra_body={"speed": "fast"},
    )
    assert claude().status_code == 200
    assert upstream.requests[0].json["speed"] == "fast"
    # Where tokens are counted, the API refuses what it takes with a message.
    upstream.script = answers(b'{"input_tokens": 1}')
    claude(path="/v1/messages/count_tokens")
    assert "speed" not in upstream.requests[1].json


# ── Tokens, sessions ────────────────────────────────────────────────────────────────


@pytest.mark.spec("claude-code", "/v1/messages, and /v1/messages/count_tokens")
def test_tokens_are_estimated_and_marked(small, upstream, gateway):
    image = {"type": "image", "source": {"type": "base64", "data": "x" * 4000}}
    text = {"type": "text", "text": "x" * 40}
    body = {"system": "y" * 8, "messages": [{"role": "user", "content": [text, image]}]}
    response = small(path="/v1/messages/count_tokens", **body)
    assert response.json() == {"input_tokens": 12, "estimated": True}
    assert upstream.requests == []
    assert gateway.recorded().counted() == (None, False)


@pytest.mark.spec(
    "claude-code",
    "x-claude-code-session-id, -agent-id and -parent-agent-id attribute requests",
)
def test_a_session_of_claude_code_is_recorded(small, upstream, gateway):
    upstream.script = answers(COMPLETION)
    small(
        headers={
            "X-Claude-Code-Session-Id": "2f1c",
            "x-claude-code-agent-id": "tide@team",
            "x-claude-code-parent-agent-id": "not a name",
        }
    )
    context = gateway.recorded()
    assert (context.session, context.agent, context.parent_agent) == (
        "2f1c",
        "tide@team",
        "",
    )
    assert json.loads(upstream.requests[0].body)["model"] == "upstream-model"
