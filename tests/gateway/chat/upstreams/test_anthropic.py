"""The anthropic upstream: requests, answers and streams in the shapes of its public API."""

import json
from typing import Any

import pytest

from gateway.chat.apis.messages import reader
from gateway.chat.apis.messages.reader import MessagesReader
from gateway.chat.apis.openai.writer import ChatWriter
from gateway.chat.request import ModelRequest
from gateway.chat.streams import TranslatedStream
from gateway.configuration.shapes import Target
from tests.gateway.chat.harness import MESSAGES, PATHS, events_of
from tests.gateway.chat.mock_upstream import answers
from tests.gateway.chat.upstreams.anthropic_events import (
    BLOCK_STREAM,
    CALL,
    HIDDEN,
    LATER,
    MESSAGE,
    SAID,
    STOP,
    THOUGHT,
    TOOL,
    USE,
    block,
    delta,
    sends_events,
    sent_body,
    started,
    stopped,
)

# ── Requests and whole answers ──────────────────────────────────────────────────────


def test_a_call_is_made_as_the_api_wants_it(claude, upstream):
    upstream.script = answers(MESSAGE)
    user, system = ({"role": role, "content": role} for role in ("user", "system"))
    claude(messages=[system, user], temperature=1.7, stop="END", max_tokens=50)
    assert upstream.requests[0].path == "/v1/messages"
    headers = upstream.requests[0].headers
    assert headers["x-api-key"] == "sk-ant-secret"
    assert headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in headers
    text = [{"type": "text", "text": "user"}]
    assert sent_body(upstream) == {
        "model": "claude-there",
        "max_tokens": 50,
        "system": "system",
        "messages": [{"role": "user", "content": text}],
        "temperature": 1,
        "stop_sequences": ["END"],
    }


def test_without_a_key_none_is_sent(gateway, upstream):
    upstream.script = answers(MESSAGE)
    gateway.declare(upstream="anthropic", targets=(Target(upstream.url, "there"),))
    assert gateway.post().status_code == 200
    assert "x-api-key" not in upstream.requests[0].headers


def test_a_message_comes_back_as_a_completion(claude, upstream, gateway):
    upstream.script = answers(MESSAGE)
    completion = claude().json()
    assert completion.pop("created") > 0
    message = {"role": "assistant", "content": "Hello!"}
    assert completion == {
        "id": completion["id"],
        "object": "chat.completion",
        "model": "claude",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 17,
            "completion_tokens": 6,
            "total_tokens": 23,
            "prompt_tokens_details": {"cached_tokens": 5},
        },
    }
    assert gateway.kept.ended[0].usage.prompt_tokens == 17


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("model_context_window_exceeded", "length"),
        ("something new", "stop"),
    ],
)
def test_stop_reasons_become_finish_reasons(claude, upstream, reason, finish):
    upstream.script = answers({**MESSAGE, "stop_reason": reason})
    assert claude().json()["choices"][0]["finish_reason"] == finish


def test_tools_and_their_results_are_translated(claude, upstream):
    upstream.script = answers({**MESSAGE, "content": [USE], "stop_reason": "tool_use"})
    texts = {"toolu_1": "low", "toolu_0": "high"}
    calls = [{**CALL, "id": key} for key in texts]
    results = [
        {"role": "tool", "tool_call_id": key, "content": text}
        for key, text in texts.items()
    ]

    response = claude(
        messages=[*MESSAGES, {"role": "assistant", "tool_calls": calls}, *results],
        tools=[TOOL],
        tool_choice="required",
        parallel_tool_calls=False,
    )

    sent = sent_body(upstream)
    _, asked, answered = sent["messages"]
    assert asked["content"] == [{**USE, "id": key} for key in texts]
    assert [
        (b["tool_use_id"], b["content"][0]["text"]) for b in answered["content"]
    ] == [*texts.items()]
    function = TOOL["function"]
    schema = {"input_schema": function["parameters"]}
    rest = {name: function[name] for name in ("name", "description")}
    assert sent["tools"] == [rest | schema]
    assert sent["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    (choice,) = response.json()["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [CALL],
    }


@pytest.mark.parametrize("given", [{"input": {}}, {"input": None}, {"input": ""}, {}])
def test_a_call_without_arguments_has_an_empty_object(claude, upstream, given):
    use = {"type": "tool_use", "id": "toolu_1", "name": "now", **given}
    upstream.script = answers({**MESSAGE, "content": [use]})
    (call,) = claude().json()["choices"][0]["message"]["tool_calls"]
    assert call["function"]["arguments"] == "{}"


def test_thoughts_are_told_apart_from_the_answer(claude, upstream):
    upstream.script = answers({**MESSAGE, "content": [THOUGHT, HIDDEN, SAID]})
    assert claude().json()["choices"][0]["message"] == {
        "role": "assistant",
        "content": "Well",
        "reasoning_content": "Hm.",
        "thinking_blocks": [
            {"index": 0, "calls": 0, **THOUGHT},
            {"index": 1, "calls": 0, **HIDDEN},
        ],
    }


# ── Turns that are sent back ────────────────────────────────────────────────────────


def next_turn(claude: Any, upstream: Any, message: Any) -> list[Any]:
    """Return what the API gets for the assistant's turn when a client sends it back."""
    upstream.script = answers(MESSAGE)
    result = {"role": "tool", "tool_call_id": "toolu_1", "content": "low"}
    response = claude(messages=[*MESSAGES, message, result], tools=[TOOL])
    assert response.status_code == 200, response.text
    turn: list[Any] = sent_body(upstream)["messages"][1]["content"]
    return turn


@pytest.mark.parametrize(
    "content",
    [
        [THOUGHT, USE],
        [THOUGHT, HIDDEN, SAID, USE],
        [HIDDEN, USE],
        [THOUGHT, SAID, LATER, USE],
        # Thinking that is not displayed, between calls.
        [{**THOUGHT, "thinking": ""}, USE, {**LATER, "thinking": ""}, {**USE, "id": "toolu_2"}],
    ],
)  # fmt: skip
def test_an_answer_can_be_sent_back(claude, upstream, content):
    upstream.script = answers(
        {**MESSAGE, "content": content, "stop_reason": "tool_use"}
    )
    message = claude(tools=[TOOL]).json()["choices"][0]["message"]
    assert next_turn(claude, upstream, message) == content


@PATHS
def test_a_stream_can_be_sent_back(claude, upstream, path):
    upstream.script = sends_events(*BLOCK_STREAM)
    message = joined(events_of(claude(stream=True, path=path, tools=[TOOL]).content))
    assert next_turn(claude, upstream, message) == [THOUGHT, HIDDEN, SAID, USE]


def joined(events: list[Any]) -> dict[str, Any]:
    """Return the message that a client makes of a stream."""
    message: dict[str, Any] = {"role": "assistant"}
    for item in events:
        if item == "[DONE]":
            continue
        for name, part in item["choices"][0]["delta"].items():
            if name == "tool_calls" and name in message:
                text = part[0]["function"]["arguments"]
                message[name][0]["function"]["arguments"] += text
            elif name in message and name != "role":
                message[name] += part
            else:
                message[name] = part
    return message


# ── Streams ─────────────────────────────────────────────────────────────────────────


def test_a_stream_is_translated_chunk_by_chunk(claude, upstream, gateway):
    upstream.script = sends_events(*BLOCK_STREAM)
    events = events_of(claude(stream=True).content)
    assert sent_body(upstream)["stream"] is True
    assert {item["model"] for item in events} == {"claude"}
    assert len({item["id"] for item in events}) == 1
    call = {**CALL, "index": 0, "function": {"name": "tide", "arguments": ""}}
    assert [item["choices"][0]["delta"] for item in events] == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "H"},
        {"reasoning_content": "m."},
        {"thinking_blocks": [{"index": 0, "calls": 0, **THOUGHT}]},
        {"thinking_blocks": [{"index": 1, "calls": 0, **HIDDEN}]},
        {"content": "Well"},
        {"tool_calls": [call]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"at":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"Brest"}'}}]},
        {},
    ]
    assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert events[-1]["usage"]["prompt_tokens"] == 25
    assert events[-1]["usage"]["completion_tokens"] == 15
    assert gateway.recorded().usage.completion_tokens == 15


def streamed(*events: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the chunks that a stream becomes."""
    writer = ChatWriter(ModelRequest("claude", True, {}), is_contract=False)
    stream = TranslatedStream(MessagesReader(), writer, None, done_completes=True)
    stream.feed([json.dumps(item).encode() for item in (started(), *events)])
    return [
        item for item in events_of(stream.flush() + stream.end()) if item != "[DONE]"
    ]


def calls_in(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts of all calls of a stream."""
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    return [call for one in deltas for call in one.get("tool_calls", ())]


def arguments_of(calls: list[dict[str, Any]]) -> dict[int, str]:
    """Return the arguments of each call by its index."""
    joined_: dict[int, str] = {}
    for call in calls:
        text = call["function"]["arguments"]
        joined_[call["index"]] = joined_.get(call["index"], "") + text
    return joined_


NO_ARGUMENTS = block(0, type="tool_use", id="toolu_1", name="now", input={})


def arguments(index: int, text: Any) -> dict[str, Any]:
    return delta(index, type="input_json_delta", partial_json=text)


@pytest.mark.parametrize(
    "parts",
    [
        [NO_ARGUMENTS],
        *(
            [NO_ARGUMENTS, part, {**STOP, "index": 0}]
            for part in (
                *(arguments(0, text) for text in ("", " ", None, "{}")),
                {"type": "message_delta", "delta": {"stop_reason": None}},
                {"type": "ping"},
            )
        ),
        [block(0, type="tool_use", id="toolu_1", name="now"), {**STOP, "index": 0}],
        [block(0, type="tool_use", id="toolu_1", name="now", input=""), {**STOP, "index": 0}],
        [
            block(0, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
            arguments(0, '{"query":"tide"}'),
            {**STOP, "index": 0},
            {**NO_ARGUMENTS, "index": 1},
            arguments(5, '{"of":"nothing"}'),
            {**STOP, "index": 1},
            block(2, type="mcp_tool_use", id="mcptoolu_1", name="x", server_name="y", input={}),
            arguments(2, '{"a":1}'),
            {**STOP, "index": 2},
        ],
    ],
)  # fmt: skip
@pytest.mark.parametrize("ends", [stopped("tool_use"), stopped("tool_use")[1:]])
def test_a_streamed_call_without_arguments_has_an_empty_object(parts, ends):
    chunks = streamed(*parts, *ends)
    calls = calls_in(chunks)
    assert {key: json.loads(text) for key, text in arguments_of(calls).items()} == {
        0: {}
    }
    assert [call["id"] for call in calls if "id" in call] == ["toolu_1"]
    if len(ends) == 2:  # the arguments come before the finish reason
        assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_calls_without_and_with_arguments_keep_apart():
    wind = block(1, type="tool_use", id="toolu_2", name="wind", input={})
    chunks = streamed(
        *(NO_ARGUMENTS, wind, arguments(1, '{"at":"Brest"}'), {**STOP, "index": 0}),
        *({**STOP, "index": 1}, *stopped("tool_use")),
    )
    assert arguments_of(calls_in(chunks)) == {0: "{}", 1: '{"at":"Brest"}'}


def test_blocks_that_come_whole_are_passed_on_whole():
    blocks = [THOUGHT, {**THOUGHT, "thinking": ""}, HIDDEN]
    parts = [
        part
        for index, whole in enumerate(blocks)
        for part in (block(index, **whole), {**STOP, "index": index})
    ]
    chunks = streamed(*parts, block(3, **USE), *stopped("tool_use"))
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert [one["thinking_blocks"] for one in deltas if "thinking_blocks" in one] == [
        [{"index": index, "calls": 0, **whole}] for index, whole in enumerate(blocks)
    ]
    assert arguments_of(calls_in(chunks)) == {0: '{"at":"Brest"}'}


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "content_block_delta", "delta": 5}],
        [block(0, type="text", text=5)],
        [{"type": ["x"]}],
        [{"type": "message_delta", "delta": {"stop_reason": ["x"]}, "usage": 5}],
        [delta(0, type="thinking_delta", thinking="x"), {**STOP, "index": 0}],
        [block(0, type="thinking", thinking=5), delta(0, type="thinking_delta", thinking=5)],
        [block(0, type="thinking"), delta(0, type="signature_delta"), {**STOP, "index": "x"}],
    ],
)  # fmt: skip
def test_nonsense_in_a_stream_is_survived(claude, upstream, events):
    upstream.script = sends_events(started(), *events, *stopped("end_turn"))
    assert claude(stream=True).status_code == 200


def test_a_thought_without_end_is_cut_off(claude, upstream, monkeypatch):
    monkeypatch.setattr(reader, "MAX_EVENT_BYTES", 10)
    more = [delta(0, type="thinking_delta", thinking="12345")] * 3
    upstream.script = sends_events(
        started(), block(0, type="thinking", thinking=""), *more
    )
    last = events_of(claude(stream=True).content)[-1]
    assert last["error"]["status_code"] == 500
