"""The anthropic upstream: requests, answers and streams in the shapes of its public API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.configuration.shapes import Target
from tests.gateway.chat.mock_upstream import answers, event, sends

MESSAGE: dict[str, Any] = {
    "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
    "type": "message",
    "role": "assistant",
    "model": "claude-there",
    "content": [{"type": "text", "text": "Hello!"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 12,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": None,
        "output_tokens": 6,
    },
}


def started(**usage: int) -> dict[str, Any]:
    usage = {"input_tokens": 25, "output_tokens": 1} | usage
    message = {**MESSAGE, "content": [], "stop_reason": None, "usage": usage}
    return {"type": "message_start", "message": message}


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def block(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": fields}


def stopped(reason: str, tokens: int = 15) -> list[dict[str, Any]]:
    end = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": tokens}},
        {"type": "message_stop"},
    ]


def sends_events(*events: dict[str, Any]) -> Any:
    """A stream as the API sends it: each event has its type as a name, too."""
    return sends(
        *(f"event: {item['type']}\n".encode() + event(item) for item in events)
    )


TEXT_STREAM = (
    started(),
    block(0, type="text", text=""),
    {"type": "ping"},
    delta(0, type="text_delta", text="Hello"),
    delta(0, type="text_delta", text=" harbour"),
    {"type": "content_block_stop", "index": 0},
)


def sent_body(upstream) -> Any:
    return upstream.requests[-1].json


def test_a_call_is_made_as_the_api_wants_it(claude, upstream):
    upstream.script = answers(MESSAGE)

    claude(
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
        ],
        temperature=1.7,
        stop="END",
        max_tokens=50,
        user="u-1",
    )

    assert upstream.requests[0].path == "/v1/messages"
    headers = upstream.requests[0].headers
    assert headers["x-api-key"] == "sk-ant-secret"
    assert headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in headers
    assert sent_body(upstream) == {
        "model": "claude-there",
        "max_tokens": 50,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        "temperature": 1,
        "stop_sequences": ["END"],
        "metadata": {"user_id": "u-1"},
    }


def test_a_message_comes_back_as_a_completion(claude, upstream, gateway):
    upstream.script = answers(MESSAGE)

    completion = claude().json()

    assert completion.pop("created") > 0
    assert completion == {
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
        "object": "chat.completion",
        "model": "claude",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello!"},
                "finish_reason": "stop",
            }
        ],
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


TOOL = {
    "type": "function",
    "function": {
        "name": "tide",
        "description": "The tide at a place",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
    },
}
CALL = {
    "id": "toolu_1",
    "type": "function",
    "function": {"name": "tide", "arguments": '{"at":"Brest"}'},
}


def test_tools_and_their_results_are_translated(claude, upstream):
    upstream.script = answers(
        {
            **MESSAGE,
            "content": [
                {
                    "type": "tool_use",
                    "id": "toolu_2",
                    "name": "tide",
                    "input": {"at": "Cuxhaven"},
                }
            ],
            "stop_reason": "tool_use",
        }
    )

    completion = claude(
        messages=[
            {"role": "user", "content": "Tide?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [CALL, {**CALL, "id": "toolu_0"}],
            },
            {"role": "tool", "tool_call_id": "toolu_1", "content": "low"},
            {"role": "tool", "tool_call_id": "toolu_0", "content": "high"},
        ],
        tools=[TOOL],
        tool_choice="required",
        parallel_tool_calls=False,
    ).json()

    sent = sent_body(upstream)
    keys = ("toolu_1", "toolu_0")
    uses = [
        {"type": "tool_use", "id": key, "name": "tide", "input": {"at": "Brest"}}
        for key in keys
    ]
    results = [
        {
            "type": "tool_result",
            "tool_use_id": key,
            "content": [{"type": "text", "text": text}],
        }
        for key, text in zip(keys, ("low", "high"), strict=True)
    ]
    assert sent["messages"][1:] == [
        {"role": "assistant", "content": uses},
        {"role": "user", "content": results},
    ]
    assert sent["tools"] == [
        {
            "name": "tide",
            "description": "The tide at a place",
            "input_schema": TOOL["function"]["parameters"],  # type: ignore[index]
        }
    ]
    assert sent["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    (choice,) = completion["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    (call,) = choice["message"]["tool_calls"]
    assert call["id"] == "toolu_2"
    assert json.loads(call["function"]["arguments"]) == {"at": "Cuxhaven"}


@pytest.mark.parametrize(
    ("choice", "there"),
    [
        (None, None),
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        (
            {"type": "function", "function": {"name": "tide"}},
            {"type": "tool", "name": "tide"},
        ),
    ],
)
def test_tool_choices_are_translated(claude, upstream, choice, there):
    upstream.script = answers(MESSAGE)
    claude(tools=[TOOL], tool_choice=choice)
    assert sent_body(upstream).get("tool_choice") == there
    assert ("tool_choice" in sent_body(upstream)) == (there is not None)


def test_without_a_key_none_is_sent(gateway, upstream):
    upstream.script = answers(MESSAGE)
    gateway.declare(upstream="anthropic", targets=(Target(upstream.url, "there"),))
    assert gateway.post().status_code == 200
    assert "x-api-key" not in upstream.requests[0].headers


def test_images_are_translated(claude, upstream):
    upstream.script = answers(MESSAGE)
    urls = "data:image/png;base64,AAAA", "https://example.com/a.png"
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    claude(
        messages=[{"role": "user", "content": [*parts, {"type": "text", "text": "?"}]}]
    )
    assert sent_body(upstream)["messages"][0]["content"] == [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
        },
        {"type": "image", "source": {"type": "url", "url": urls[1]}},
        {"type": "text", "text": "?"},
    ]


def test_a_json_schema_is_translated(claude, upstream):
    upstream.script = answers(MESSAGE)
    schema = {"type": "object"}
    claude(
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": schema},
        }
    )
    wanted = {"format": {"type": "json_schema", "schema": schema}}
    assert sent_body(upstream)["output_config"] == wanted


def test_a_stream_is_translated_chunk_by_chunk(claude, upstream, gateway):
    upstream.script = sends_events(*TEXT_STREAM, *stopped("end_turn"))

    response = claude(stream=True)

    events = [json.loads(part[6:]) for part in response.text.split("\n\n")[:-1]]
    assert sent_body(upstream)["stream"] is True
    assert {item["model"] for item in events} == {"claude"}
    assert {item["id"] for item in events} == {MESSAGE["id"]}
    assert [item["choices"][0]["delta"] for item in events] == [
        {"role": "assistant", "content": ""},
        {"content": "Hello"},
        {"content": " harbour"},
        {},
    ]
    assert events[-1]["choices"][0]["finish_reason"] == "stop"
    assert events[-1]["usage"]["prompt_tokens"] == 25
    assert events[-1]["usage"]["completion_tokens"] == 15
    assert gateway.settled(lambda: gateway.kept.ended)
    assert gateway.kept.ended[0].usage.completion_tokens == 15
