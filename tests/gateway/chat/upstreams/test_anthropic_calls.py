"""Calls of tools in the streams and answers of the anthropic upstream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.chat.core.sse import DONE
from gateway.chat.upstreams.anthropic import Translation
from tests.gateway.chat.harness import events_of
from tests.gateway.chat.mock_upstream import answers
from tests.gateway.chat.upstreams.test_anthropic import (
    MESSAGE,
    block,
    delta,
    sends_events,
    started,
    stopped,
)


def streamed(*events: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the chunks that a stream becomes."""
    translation = Translation(report=lambda _: None)
    chunks = [
        chunk
        for event in (started(), *events)
        for chunk in translation.chunks_of(event)
        if chunk != DONE
    ]
    return [json.loads(chunk) for chunk in chunks]


def calls_in(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts of all calls of a stream."""
    return [
        call
        for chunk in chunks
        for choice in chunk["choices"]
        for call in choice["delta"].get("tool_calls", ())
    ]


def joined_arguments(calls: list[dict[str, Any]]) -> dict[int, str]:
    """Return the arguments of each call by its index."""
    joined: dict[int, str] = {}
    for call in calls:
        text = call["function"]["arguments"]
        joined[call["index"]] = joined.get(call["index"], "") + text
    return joined


def test_streamed_tool_calls_are_translated():
    chunks = streamed(
        block(0, type="text", text="Well"),
        block(1, type="tool_use", id="toolu_1", name="tide", input={}),
        delta(1, type="input_json_delta", partial_json='{"at":'),
        delta(1, type="input_json_delta", partial_json='"Brest"}'),
        block(2, type="tool_use", id="toolu_2", name="wind", input={}),
        delta(2, type="input_json_delta", partial_json="{}"),
        *stopped("tool_use"),
    )

    calls = calls_in(chunks)
    assert [call["index"] for call in calls] == [0, 0, 0, 1, 1]
    assert calls[0]["id"] == "toolu_1"
    assert calls[0]["function"] == {"name": "tide", "arguments": ""}
    text = "".join(call["function"]["arguments"] for call in calls[:3])
    assert json.loads(text) == {"at": "Brest"}
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"


STOP = {"type": "content_block_stop"}
NO_ARGUMENTS = block(0, type="tool_use", id="toolu_1", name="now", input={})


@pytest.mark.parametrize(
    "parts",
    [
        [NO_ARGUMENTS, {**STOP, "index": 0}],
        [NO_ARGUMENTS],
        [NO_ARGUMENTS, delta(0, type="input_json_delta", partial_json=""), {**STOP, "index": 0}],
        [NO_ARGUMENTS, delta(0, type="input_json_delta", partial_json=" "), {**STOP, "index": 0}],
        [NO_ARGUMENTS, delta(0, type="input_json_delta"), {**STOP, "index": 0}],
        [NO_ARGUMENTS, delta(0, type="input_json_delta", partial_json="{}"), {**STOP, "index": 0}],
        [block(0, type="tool_use", id="toolu_1", name="now"), {**STOP, "index": 0}],
        [block(0, type="tool_use", id="toolu_1", name="now", input=""), {**STOP, "index": 0}],
        [
            block(0, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
            delta(0, type="input_json_delta", partial_json='{"query":"tide"}'),
            {**STOP, "index": 0},
            block(1, type="tool_use", id="toolu_1", name="now", input={}),
            delta(5, type="input_json_delta", partial_json='{"of":"nothing"}'),
            {**STOP, "index": 1},
            block(2, type="mcp_tool_use", id="mcptoolu_1", name="x", server_name="y", input={}),
            delta(2, type="input_json_delta", partial_json='{"a":1}'),
            {**STOP, "index": 2},
        ],
        [NO_ARGUMENTS, {"type": "message_delta", "delta": {"stop_reason": None}}, {**STOP, "index": 0}],
    ],
)  # fmt: skip
@pytest.mark.parametrize("ends", [stopped("tool_use"), stopped("tool_use")[1:]])
def test_a_streamed_call_without_arguments_has_an_empty_object(parts, ends):
    calls = calls_in(streamed(*parts, *ends))
    (arguments,) = joined_arguments(calls).values()
    assert json.loads(arguments) == {}
    assert [call["id"] for call in calls if "id" in call] == ["toolu_1"]


def test_calls_without_and_with_arguments_keep_apart():
    wind = block(1, type="tool_use", id="toolu_2", name="wind", input={})
    argument = delta(1, type="input_json_delta", partial_json='{"at":"Brest"}')
    chunks = streamed(
        *(NO_ARGUMENTS, wind, argument, {**STOP, "index": 0}),
        *({**STOP, "index": 1}, *stopped("tool_use")),
    )
    assert joined_arguments(calls_in(chunks)) == {0: "{}", 1: '{"at":"Brest"}'}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v2/chat/completions"])
def test_a_client_gets_the_empty_object_before_the_finish_reason(
    claude, upstream, path
):
    upstream.script = sends_events(started(), NO_ARGUMENTS, *stopped("tool_use"))
    events = events_of(claude(stream=True, path=path).content)
    chunks = [event for event in events if event != "[DONE]"]
    assert joined_arguments(calls_in(chunks)) == {0: "{}"}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("given", [{"input": {}}, {"input": None}, {"input": ""}, {}])
def test_a_call_without_arguments_has_an_empty_object(claude, upstream, given):
    use = {"type": "tool_use", "id": "toolu_1", "name": "now", **given}
    upstream.script = answers({**MESSAGE, "content": [use]})
    (call,) = claude().json()["choices"][0]["message"]["tool_calls"]
    assert call["function"]["arguments"] == "{}"
