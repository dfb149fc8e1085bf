"""The anthropic upstream: requests, answers and streams in the shapes of its public API."""

import json
from typing import Any

import pytest

from gateway.chat.apis.messages.reader import MessagesReader
from gateway.chat.apis.openai.writer import ChatWriter
from gateway.chat.streams import TranslatedStream
from gateway.configuration.shapes import Target
from tests.gateway.chat.harness import MESSAGES, events_of, facts
from tests.gateway.chat.mock_upstream import answers
from tests.gateway.chat.upstreams.anthropic_events import (
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
    sent_body,
    started,
    stopped,
)

FUNCTION = {"type": "function", "function": {"name": "now"}}

# ── Requests and whole answers ──────────────────────────────────────────────────────


def test_without_a_key_none_is_sent(gateway, upstream):
    upstream.script = answers(MESSAGE)
    gateway.declare(upstream="anthropic", targets=(Target(upstream.url, "there"),))
    assert gateway.post().status_code == 200
    assert "x-api-key" not in upstream.requests[0].headers


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"messages": "x"}, "messages: must be a list."),
        ({"messages": [*MESSAGES, {"content": "x"}]}, "messages[1] lacks 'role'."),
        ({"messages": ["x"]}, "messages[0] is not of its API's shape."),
        ({"tools": [{"type": "function"}]}, "tools lacks 'function'."),
        (
            {"tools": [FUNCTION], "tool_choice": "x"},
            "tool_choice: not one of OpenAI's forms.",
        ),
        ({"response_format": "x"}, "The request is not of its API's shape."),
    ],
)
def test_a_request_of_another_shape_is_refused(claude, upstream, fields, text):
    response = claude(**fields)
    assert (response.status_code, response.json()) == (400, {"detail": text})
    assert not upstream.requests


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


@pytest.mark.parametrize("given", [{"input": {}}, {"input": None}, {"input": ""}, {}])
def test_a_call_without_arguments_has_an_empty_object(claude, upstream, given):
    use = {"type": "tool_use", "id": "toolu_1", "name": "now", **given}
    upstream.script = answers({**MESSAGE, "content": [use]})
    (call,) = claude().json()["choices"][0]["message"]["tool_calls"]
    assert call["function"]["arguments"] == "{}"


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


# ── Streams ─────────────────────────────────────────────────────────────────────────


def streamed(*events: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the chunks that a stream becomes."""
    context = facts(stream=True)
    stream = TranslatedStream(context, MessagesReader(), ChatWriter(context))
    stream.feed([json.dumps(item).encode() for item in (started(), *events)])
    return [
        item for item in events_of(stream.flush() + stream.end()) if item != "[DONE]"
    ]


NO_ARGUMENTS = block(0, type="tool_use", id="toolu_1", name="now", input={})


def arguments(index: int, text: Any) -> dict[str, Any]:
    return delta(index, type="input_json_delta", partial_json=text)


SERVERS_OWN = block(
    0, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}
)
STOPPED = {**STOP, "index": 0}


@pytest.mark.parametrize(
    "parts",
    [
        [NO_ARGUMENTS],
        *([NO_ARGUMENTS, arguments(0, text), STOPPED] for text in ("", " ", None, "{}")),
        [{**NO_ARGUMENTS, "content_block": {**NO_ARGUMENTS["content_block"], "input": ""}}, STOPPED],
        [SERVERS_OWN, arguments(0, '{"query":"tide"}'), STOPPED, NO_ARGUMENTS, arguments(5, '{"of":"nothing"}')],
    ],
)  # fmt: skip
@pytest.mark.parametrize("ends", [stopped("tool_use"), stopped("tool_use")[1:]])
def test_a_streamed_call_without_arguments_has_an_empty_object(parts, ends):
    chunks = streamed(*parts, *ends)
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    calls = [call for one in deltas for call in one.get("tool_calls", ())]
    assert {call["index"] for call in calls} == {0}
    text = "".join(call["function"]["arguments"] for call in calls)
    assert json.loads(text) == {}
    assert [call["id"] for call in calls if "id" in call] == ["toolu_1"]
    if len(ends) == 2:  # the arguments come before the finish reason
        assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
