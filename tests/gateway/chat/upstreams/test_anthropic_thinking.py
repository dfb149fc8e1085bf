"""What Anthropic's model thought reaches the client, and goes back so that the next turn is valid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.chat.core.errors import UnsupportedRequestError
from tests.gateway.chat.harness import MESSAGES, events_of
from tests.gateway.chat.mock_upstream import answers
from tests.gateway.chat.upstreams.anthropic_cases import HIDDEN, THOUGHT, USE, sent
from tests.gateway.chat.upstreams.test_anthropic import (
    MESSAGE,
    TOOL,
    block,
    delta,
    sends_events,
    sent_body,
    started,
    stopped,
)

PATHS = pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v2/chat/completions"]
)
SAID = {"type": "text", "text": "Well."}
END = {"type": "content_block_stop"}
LATER = {"type": "thinking", "thinking": "And so.", "signature": "bGF0ZXI="}


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
    [[THOUGHT, USE], [THOUGHT, HIDDEN, SAID, USE], [HIDDEN, USE], [THOUGHT, SAID, LATER, USE]],
)  # fmt: skip
def test_an_answer_can_be_sent_back(claude, upstream, content):
    upstream.script = answers(
        {**MESSAGE, "content": content, "stop_reason": "tool_use"}
    )
    message = claude(tools=[TOOL]).json()["choices"][0]["message"]
    assert next_turn(claude, upstream, message) == content


def test_thoughts_are_told_apart_from_the_answer(claude, upstream):
    upstream.script = answers({**MESSAGE, "content": [THOUGHT, HIDDEN, SAID]})
    assert claude().json()["choices"][0]["message"] == {
        "role": "assistant",
        "content": "Well.",
        "reasoning_content": "Hm.",
        "thinking_blocks": [THOUGHT, HIDDEN],
    }


STREAM = (
    started(),
    block(0, type="thinking", thinking="", signature=""),
    delta(0, type="thinking_delta", thinking="H"),
    delta(0, type="thinking_delta", thinking="m."),
    delta(0, type="signature_delta", signature="c2"),
    delta(0, type="signature_delta", signature="ln"),
    {**END, "index": 0},
    block(1, **HIDDEN),
    {**END, "index": 1},
    block(2, type="text", text=""),
    delta(2, type="text_delta", text="Well."),
    {**END, "index": 2},
    block(3, type="tool_use", id="toolu_1", name="tide", input={}),
    delta(3, type="input_json_delta", partial_json='{"at":"Brest"}'),
    {**END, "index": 3},
    *stopped("tool_use"),
)


@PATHS
def test_a_stream_tells_thoughts_as_they_come_and_blocks_once_they_are_whole(
    claude, upstream, path
):
    upstream.script = sends_events(*STREAM)
    events = events_of(claude(stream=True, path=path).content)
    deltas = [event["choices"][0]["delta"] for event in events if event != "[DONE]"]
    assert deltas[1:6] == [
        {"reasoning_content": "H"},
        {"reasoning_content": "m."},
        {"thinking_blocks": [{"index": 0, **THOUGHT}]},
        {"thinking_blocks": [{"index": 1, **HIDDEN}]},
        {"content": "Well."},
    ]


@PATHS
def test_a_stream_can_be_sent_back(claude, upstream, path):
    upstream.script = sends_events(*STREAM)
    message = joined(events_of(claude(stream=True, path=path, tools=[TOOL]).content))
    assert next_turn(claude, upstream, message) == [THOUGHT, HIDDEN, SAID, USE]


def joined(events: list[Any]) -> dict[str, Any]:
    """Return the message that a client makes of a stream."""
    message: dict[str, Any] = {"role": "assistant"}
    for event in events:
        if event == "[DONE]":
            continue
        for name, part in event["choices"][0]["delta"].items():
            if name == "tool_calls" and name in message:
                text = part[0]["function"]["arguments"]
                message[name][0]["function"]["arguments"] += text
            elif name in message and name != "role":
                message[name] += part
            else:
                message[name] = part
    return message


@pytest.mark.parametrize("block_", [THOUGHT, {**THOUGHT, "thinking": ""}, HIDDEN])
def test_a_block_that_comes_whole_is_passed_on_whole(claude, upstream, block_):
    stop = {**END, "index": 0}
    upstream.script = sends_events(
        started(), block(0, **block_), stop, *stopped("end_turn")
    )
    events = events_of(claude(stream=True).content)
    blocks = [event["choices"][0]["delta"].get("thinking_blocks") for event in events]
    assert [item for item in blocks if item] == [[{"index": 0, **block_}]]


def test_arguments_that_come_with_their_call_are_not_lost(claude, upstream):
    upstream.script = sends_events(started(), block(0, **USE), *stopped("tool_use"))
    events = events_of(claude(stream=True).content)
    (call,) = next(
        calls
        for event in events
        if (calls := event["choices"][0]["delta"].get("tool_calls"))
    )
    assert json.loads(call["function"]["arguments"]) == USE["input"]


@pytest.mark.parametrize(
    "events",
    [
        [delta(0, type="thinking_delta", thinking="x"), {**END, "index": 0}],
        [block(0, type="thinking", thinking=5), delta(0, type="thinking_delta", thinking=5)],
        [block(0, type="thinking"), delta(0, type="signature_delta"), {**END, "index": "x"}],
    ],
)  # fmt: skip
def test_nonsense_about_thoughts_is_survived(claude, upstream, events):
    upstream.script = sends_events(started(), *events, *stopped("end_turn"))
    assert claude(stream=True).status_code == 200


def test_a_thought_without_end_is_cut_off(claude, upstream, monkeypatch):
    from gateway.chat.upstreams import anthropic

    monkeypatch.setattr(anthropic, "MAX_EVENT_BYTES", 10)
    more = [delta(0, type="thinking_delta", thinking="12345")] * 3
    upstream.script = sends_events(
        started(), block(0, type="thinking", thinking=""), *more
    )
    last = events_of(claude(stream=True).content)[-1]
    assert last["error"]["status_code"] == 500


@pytest.mark.parametrize(
    ("fields", "tokens", "limit"),
    [
        ({"reasoning_effort": "minimal"}, 1024, 5120),
        ({"reasoning_effort": "low"}, 2048, 6144),
        ({"reasoning_effort": "medium"}, 8192, 12288),
        ({"reasoning_effort": "high"}, 16384, 20480),
        ({"reasoning_effort": "xhigh"}, 32768, 36864),
        ({"reasoning_effort": "max"}, 49152, 53248),
        ({"reasoning_effort": "high", "max_tokens": 5000}, 2500, 5000),
        ({"reasoning_effort": "none"}, None, 4096),
        ({}, None, 4096),
    ],
)
def test_an_entry_with_budgets_thinks_with_so_many_tokens(
    gateway, upstream, fields, tokens, limit
):
    upstream.script = answers(MESSAGE)
    gateway.declare(upstream="anthropic", thinking="budget")
    assert gateway.post(**fields).status_code == 200
    body = sent_body(upstream)
    enabled = {"type": "enabled", "budget_tokens": tokens}
    assert body.get("thinking") == (enabled if tokens else None)
    assert body["max_tokens"] == limit
    assert "output_config" not in body


ENABLED = {"type": "enabled", "budget_tokens": 9000}


@pytest.mark.parametrize(
    ("way", "effort", "given", "expected"),
    [
        ("budget", "low", ENABLED, {"thinking": ENABLED, "output_config": None}),
        ("budget", "low", {"type": "enabled"}, {"thinking": ENABLED | {"budget_tokens": 2048}}),
        *(
            (way, "low", given, {"thinking": given, "output_config": {"effort": "low"}})
            for way in ("adaptive", "unasked")
            for given in (ENABLED, {"type": "adaptive"}, {"type": "adaptive", "display": "omitted"})
        ),
        (
            "adaptive",
            "low",
            {"type": "enabled"},
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "low"},
            },
        ),
        *(
            (way, "none", {"type": "disabled"}, {"thinking": {"type": "disabled"}, "output_config": None})
            for way in ("adaptive", "unasked", "budget")
        ),
    ],
)  # fmt: skip
def test_an_effort_can_stand_beside_thinking_that_agrees(way, effort, given, expected):
    body = sent(way, reasoning_effort=effort, thinking=given)
    assert {name: body.get(name) for name in expected} == expected


def test_a_budget_needs_room_for_itself_and_the_text():
    with pytest.raises(UnsupportedRequestError, match="less than 2048 tokens"):
        sent("budget", reasoning_effort="low", max_tokens=2047)


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({}, 16384),
        ({"reasoning_effort": "none"}, 16384),
        ({"output_config": {"effort": "max"}}, 16384),
        ({"thinking": {"type": "adaptive"}}, 16384),
        ({"thinking": {"type": "disabled"}}, 4096),
        ({"max_tokens": 7}, 7),
    ],
)
def test_a_model_that_thinks_unasked_has_room_for_it(fields, limit):
    assert sent("unasked", **fields)["max_tokens"] == limit
    asked = sent("unasked", reasoning_effort="high")
    assert asked["thinking"] == {"type": "adaptive", "display": "summarized"}
