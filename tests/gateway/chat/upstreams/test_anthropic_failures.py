"""What the anthropic upstream refuses to translate, and what it makes of the API's failures."""

from __future__ import annotations

import json

import pytest

from tests.gateway.chat.mock_upstream import answers
from tests.gateway.chat.upstreams.test_anthropic import (
    TEXT_STREAM,
    TOOL,
    block,
    sends_events,
    started,
    stopped,
)


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({"n": 2}, "Endpoint does not support request: n"),
        ({"n": []}, "Endpoint does not support request: n"),
        (
            {"functions": [{}]},
            "Endpoint does not support request: functions; use tools",
        ),
        ({"messages": None}, "messages: must be a list."),
        ({"messages": ["x"]}, "messages: each must be an object with a role."),
        ({"messages": [{"role": 5}]}, "messages: each must be an object with a role."),
        (
            {"messages": [{"role": "function"}]},
            "Endpoint does not support request: messages with the role function",
        ),
        (
            {"messages": [{"role": "user", "content": 5}]},
            "messages: content must be a string or a list.",
        ),
        (
            {"messages": [{"role": "user", "content": [5]}]},
            "messages: a part of the content has no type.",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            "Endpoint does not support request: content of the type input_audio",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": 5}]},
            "messages: tool_calls must be a list.",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{}]}]},
            "messages: a tool call needs id, name and arguments.",
        ),
        ({"tools": 5}, "tools: must be a list."),
        ({"tools": [{}]}, "tools: each must be a function with a name."),
        (
            {"tools": [TOOL], "tool_choice": 5},
            "tool_choice: not one of OpenAI's forms.",
        ),
        (
            {"response_format": {"type": "json_object"}},
            "Endpoint does not support request: response_format json_object",
        ),
    ],
)
def test_what_cannot_be_translated_is_refused_before_it_is_sent(
    claude, upstream, fields, detail
):
    response = claude(**fields)
    assert (response.status_code, response.json()) == (400, {"detail": detail})
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("status", "kind", "told_status"),
    [
        (400, "invalid_request_error", 400),
        (413, "request_too_large", 400),
        (401, "authentication_error", 500),
        (429, "rate_limit_error", 500),
        (529, "overloaded_error", 500),
    ],
)
def test_errors_are_told_by_their_status(claude, upstream, status, kind, told_status):
    error = {"type": "error", "error": {"type": kind, "message": "as it is"}}
    upstream.script = answers(error, status)
    response = claude()
    assert response.status_code == told_status
    assert (response.json()["detail"] == "as it is") == (told_status == 400)


@pytest.mark.parametrize(
    ("kind", "status"), [("overloaded_error", 500), ("invalid_request_error", 400)]
)
def test_an_error_in_the_middle_of_a_stream_becomes_the_error_chunk(
    claude, upstream, kind, status
):
    error = {"type": "error", "error": {"type": kind, "message": "as it is"}}
    upstream.script = sends_events(*TEXT_STREAM, error)
    last = json.loads(claude(stream=True).text.split("\n\n")[-2][6:])
    assert last["error"]["status_code"] == status


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "content_block_delta", "delta": 5}],
        [block(0, type="text", text=5)],
        [{"type": ["x"]}],
        [{"type": "message_delta", "delta": {"stop_reason": ["x"]}, "usage": 5}],
    ],
)
def test_nonsense_in_a_stream_is_survived(claude, upstream, events):
    upstream.script = sends_events(started(), *events, *stopped("end_turn"))
    assert claude(stream=True).status_code == 200


@pytest.mark.parametrize("value", [[], {"type": "message"}, {"content": []}])
def test_an_answer_that_is_no_message_is_a_failure(claude, upstream, value):
    upstream.script = answers(value)
    assert claude().status_code == 500
