"""Servers that answer a request for a stream with JSON: the client gets a stream."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest

from gateway.chat.policies.rules import Policies
from gateway.configuration.content import PolicyEntry
from gateway.configuration.shapes import Target
from tests.gateway.chat.harness import (
    INTERNAL,
    PATHS,
    REQUEST_ID,
    V1,
    status_and_detail,
    text_of,
)
from tests.gateway.chat.mock_upstream import COMPLETION, USAGE, answers, sends
from tests.gateway.chat.operations.responses.test_passing import RESPONSE
from tests.gateway.chat.upstreams.anthropic_events import MESSAGE
from tests.running import PATIENCE_S

CALLS = [
    {"id": f"call_{n}", "type": "function", "function": {"name": "tide", "arguments": arguments}}
    for n, arguments in enumerate(['{"at": "Brest"}', "{}"])
]  # fmt: skip
CALLING = {
    **COMPLETION,
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello", "tool_calls": CALLS},
            "finish_reason": "tool_calls",
        }
    ],
}
TURN: dict[str, Any] = {
    **MESSAGE,
    "content": [
        {"type": "thinking", "thinking": "Ships.", "signature": "c2ln"},
        {"type": "text", "text": "Hello", "citations": None},
        {"type": "tool_use", "id": "toolu_1", "name": "tide", "input": {"at": "Brest"}},
        {"type": "tool_use", "id": "toolu_2", "name": "tide", "input": {}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 9, "output_tokens": 2},
}
TEXT = {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}
ITEMS: list[dict[str, Any]] = [
    {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "x"},
    {**RESPONSE["output"][0], "content": [TEXT, {"type": "refusal", "refusal": "No."}]},
    {
        "id": "fc_1",
        "type": "function_call",
        "status": "completed",
        "call_id": "call_1",
        "name": "tide",
        "arguments": '{"at": "Brest"}',
    },
]
PRETTY = {"indent": 1}


def _body(value: Any, **options: Any) -> bytes:
    return json.dumps(value, **options).encode()


@PATHS
@pytest.mark.parametrize(
    "body",
    [
        _body(CALLING),
        _body(CALLING, **PRETTY) + b"\n\n",
        b"\xef\xbb\xbf \n" + _body(CALLING),
    ],
)
def test_a_whole_completion_is_a_stream_of_its_chunks(gateway, upstream, path, body):
    for script in (answers(body), sends(body[:50], body[50:])):
        upstream.script = script
        *events, last = gateway.stream(
            path=path, stream_options={"include_usage": True}
        )
        if path == V1:
            assert last == "[DONE]"
            *events, last = events
        assert last["usage"] == USAGE
        assert text_of(events) == "Hello"
        assert {event["object"] for event in events} == {"chat.completion.chunk"}
        assert {event["model"] for event in events} == {"small"}
        calls = events[0]["choices"][0]["delta"]["tool_calls"]
        assert calls == [{"index": n, **call} for n, call in enumerate(CALLS)]
        assert gateway.kept.ended.pop().usage.completion_tokens == 2


def test_usage_goes_only_to_a_client_that_asked_for_it(gateway, upstream):
    upstream.script = answers(COMPLETION)
    *events, last = gateway.stream(path=V1)
    assert last == "[DONE]"
    assert text_of(events) == "Hello"
    assert not any("usage" in event for event in events)


def test_a_large_completion_keeps_its_numbers(gateway, upstream):
    value = _body({**COMPLETION, "text": "x" * 2_000_000, "own": 0})
    upstream.script = answers(value.replace(b'"own": 0', b'"own": 1e400'))
    response = gateway.post(stream=True)
    assert response.content.count(b'"own":1e400') == 2


@pytest.mark.parametrize("upstream_kind", ["openai", "anthropic"])
def test_messages_are_a_stream_of_their_events(gateway, upstream, key, upstream_kind):
    target = Target(upstream.url, "claude-there", "sk-ant-secret")
    gateway.declare(upstream=upstream_kind, targets=(target,))
    whole = CALLING if upstream_kind == "openai" else TURN
    upstream.script = answers(whole)
    client = anthropic.Anthropic(base_url=gateway.url, api_key=key, max_retries=0)
    with client.messages.stream(
        model="small", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
    ) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert text == "Hello"
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (9, 2)
    called = [b.input for b in message.content if b.type == "tool_use"]
    assert called == [{"at": "Brest"}, {}]
    if upstream_kind == "anthropic":
        assert message.content[0].signature == "c2ln"  # type: ignore[union-attr]
    assert gateway.recorded().usage.completion_tokens == 2


@PATHS
def test_a_message_is_a_stream_of_chunks(gateway, claude, upstream, path):
    upstream.script = answers(TURN)
    response = claude(stream=True, path=path)
    chunks = [
        json.loads(line[6:]) for line in response.text.split("\n\n") if "{" in line
    ]
    assert text_of(chunks) == "Hello"
    assert gateway.recorded().usage.completion_tokens == 2


@pytest.mark.parametrize("is_passed", [True, False])
def test_responses_are_a_stream_of_their_events(gateway, upstream, key, is_passed):
    gateway.declare(responses=is_passed)
    upstream.script = answers(
        {**RESPONSE, "metadata": {}, "output": ITEMS} if is_passed else CALLING
    )
    client = openai.OpenAI(
        base_url=f"{gateway.url}/v1", api_key=key, max_retries=0,
        timeout=PATIENCE_S,
    )  # fmt: skip
    with client.responses.stream(model="small", input="Hi") as stream:
        events = list(stream)
        response = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert response.output_text == "Hello"
    deltas = [e.delta for e in events if e.type == "response.output_text.delta"]
    assert deltas == ["Hello"]
    done = [
        e.arguments for e in events if e.type == "response.function_call_arguments.done"
    ]
    assert done[0] == '{"at": "Brest"}'
    assert response.usage is not None
    assert (
        gateway.recorded().usage.completion_tokens == response.usage.output_tokens == 2
    )


@pytest.mark.parametrize(
    "cut",
    [_body(COMPLETION)[:-20], b'{"choices": []}', b'{"hello": "x"}', b'["x"]'],
)
def test_what_is_no_whole_answer_is_a_failure(gateway, upstream, cut):
    upstream.script = answers(cut)
    response = gateway.post(stream=True, headers=REQUEST_ID)
    assert status_and_detail(response) == (500, INTERNAL)


@PATHS
def test_rules_apply_to_a_whole_answer(gateway, upstream, path):
    text = json.dumps(CALLING).replace("Brest", "4111 1111 1111 1111")
    upstream.script = answers(text.encode())
    rule = PolicyEntry("card", "mask", "answer", pattern="card")
    gateway.change(policies=Policies.of([rule]))
    events = [event for event in gateway.stream(path=path) if event != "[DONE]"]
    parts = [c["delta"] for event in events for c in event["choices"]]
    calls = [call for part in parts for call in part.get("tool_calls", ())]
    assert [call["id"] for call in calls[:2]] == ["call_0", "call_1"]
    arguments = "".join(c["function"]["arguments"] for c in calls if c["index"] == 0)
    assert arguments == '{"at": "[card]"}'
    assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"
