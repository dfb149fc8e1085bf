"""Answers in the three shapes, put together from streams as from whole responses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.chat.request_log.answers import ANSWERS, MAX_CALLS, MAX_CHOICES

CALLED = {"id": "call_1", "name": "tide", "arguments": '{"at":"Brest"}'}
EXPECTED = {
    "text": "Hello",
    "reasoning": "Hm.",
    "refusal": "",
    "tool_calls": [CALLED],
    "finish_reason": "end",
}


def chat(part: dict[str, Any], key: str, reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, key: part, "finish_reason": reason}]}


def function(**fields: str) -> dict[str, str]:
    return fields


CHAT_CALL = {
    "id": "call_1",
    "function": {"name": "tide", "arguments": '{"at":"Brest"}'},
}
FIRST = {"index": 0, "id": "call_1", "function": {"name": "tide", "arguments": ""}}
SECOND = {"index": 0, "function": {"arguments": '{"at":"Brest"}'}}
WHOLE: dict[str, dict[str, Any]] = {
    "chat.completions": chat(
        {"content": "Hello", "reasoning_content": "Hm.", "tool_calls": [CHAT_CALL]},
        "message",
        "end",
    ),
    "messages": {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "Hm."},
            {"type": "text", "text": "Hello"},
            {
                "type": "tool_use",
                "id": "call_1",
                "name": "tide",
                "input": {"at": "Brest"},
            },
        ],
        "stop_reason": "end",
    },
    "responses": {
        "object": "response",
        "status": "end",
        "output": [
            {"type": "reasoning", "summary": [{"text": "Hm."}]},
            {"type": "message", "content": [{"text": "Hello"}]},
            {
                "type": "function_call",
                "call_id": "call_1",
                "name": "tide",
                "arguments": '{"at":"Brest"}',
            },
        ],
    },
}
STREAMS: dict[str, list[dict[str, Any]]] = {
    "chat.completions": [
        chat({"role": "assistant", "reasoning_content": "Hm."}, "delta"),
        chat({"content": "Hel"}, "delta"),
        chat({"content": "lo"}, "delta"),
        chat({"tool_calls": [FIRST]}, "delta"),
        chat({"tool_calls": [SECOND]}, "delta", "end"),
        {"choices": [], "usage": {}},
    ],
    "messages": [
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
        {"type": "content_block_delta", "index": 0, "delta": {"thinking": "Hm."}},
        {"type": "content_block_delta", "index": 1, "delta": {"text": "Hel"}},
        {"type": "content_block_delta", "index": 1, "delta": {"text": "lo"}},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {
                "type": "tool_use",
                "id": "call_1",
                "name": "tide",
                "input": {},
            },
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": '{"at":"Brest"}'},
        },
        {"type": "message_delta", "delta": {"stop_reason": "end"}},
        {"type": "message_stop"},
    ],
    "responses": [
        {"type": "response.created", "response": {"status": "in_progress"}},
        {"type": "response.reasoning_summary_text.delta", "delta": "Hm."},
        {"type": "response.output_text.delta", "output_index": 1, "delta": "Hello"},
        {
            "type": "response.output_item.added",
            "output_index": 2,
            "item": {"type": "function_call", "call_id": "call_1", "name": "tide"},
        },
        {
            "type": "response.function_call_arguments.delta",
            "output_index": 2,
            "delta": '{"at":"Brest"}',
        },
        {"type": "response.completed", "response": {"status": "end", "output": []}},
    ],
}
SHAPES = pytest.mark.parametrize("shape", ANSWERS)


@SHAPES
def test_a_whole_answer_and_a_stream_read_the_same(shape: str):
    whole, streamed = (ANSWERS[shape](1000) for _ in range(2))
    whole.read(json.dumps(WHOLE[shape]).encode())
    for event in STREAMS[shape]:
        streamed.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    streamed.feed(b"data: [DONE]\n\n")
    assert whole.value() == streamed.value() == [EXPECTED]


@pytest.mark.parametrize(
    "part",
    [
        {"reasoning": "Hm."},
        {"reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]},
        {"content": [{"type": "thinking", "thinking": [{"text": "Hm."}]}]},
    ],
)
def test_reasoning_is_kept_wherever_a_server_puts_it(part):
    answer = ANSWERS["chat.completions"](1000)
    answer.read(json.dumps(chat(part, "delta")).encode())
    assert answer.value()[0]["reasoning"] == "Hm."


@pytest.mark.parametrize("place", [{"index": 0}, {}])
def test_calls_that_share_an_index_are_told_apart(place: dict[str, int]):
    """Gemini gives each call of a stream the same index, others give none."""
    answer = ANSWERS["chat.completions"](1000)
    for key in ("call_1", "call_2"):
        call = {**place, **CHAT_CALL, "id": key}
        event = chat({"tool_calls": [call]}, "delta")
        answer.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    (choice,) = answer.value()
    assert choice["tool_calls"] == [CALLED, {**CALLED, "id": "call_2"}]


@SHAPES
def test_nonsense_of_an_upstream_is_no_answer(shape: str):
    answer = ANSWERS[shape](1000)
    nonsense = [
        *({"choices": 1}, {"choices": [1, {"delta": 1}, {"delta": {"tool_calls": 5}}]}),
        *({"type": 1, "delta": 5}, {"type": "content_block_delta", "delta": {}}),
        *([], {"object": "response", "output": 5}, {"choices": [{"index": "x"}]}),
    ]
    for event in nonsense:
        answer.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    answer.feed(b"data: {half\n\n: comment\n\n")
    assert all(not one["text"] for one in answer.value())


def test_text_beyond_the_limit_is_not_held():
    answer = ANSWERS["chat.completions"](1000)
    event = chat({"content": "x" * 10_000}, "delta")
    for _ in range(100):
        answer.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    (choice,) = answer.value()
    assert len(choice["text"]) < 6000
    assert answer.is_cut


def test_choices_and_calls_are_counted():
    answer = ANSWERS["chat.completions"](1000)
    choices = [{"index": n, "delta": {"content": "x"}} for n in range(500)]
    calls = [{"index": n, "function": {"name": "f"}} for n in range(2 * MAX_CALLS)]
    choices.append({"index": 0, "delta": {"tool_calls": calls}})
    answer.read(json.dumps({"choices": choices}).encode())
    value = answer.value()
    assert (len(value), len(value[0]["tool_calls"])) == (MAX_CHOICES, MAX_CALLS)
    assert answer.is_cut
