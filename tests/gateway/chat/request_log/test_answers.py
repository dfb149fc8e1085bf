"""Prompts and answers in the log: never more than the room, no secrets."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.chat.apis.deltas import (
    CallArguments,
    CallStart,
    Delta,
    Finish,
    Text,
    Thinking,
    Tokens,
)
from gateway.chat.request_log import answers
from gateway.chat.request_log.answers import Answer
from gateway.chat.request_log.cut import HIDDEN, Room
from gateway.chat.tokens import Usage


def put_together(*deltas: Delta, most: int = 100) -> Answer:
    answer = Answer(most)
    for delta in deltas:
        answer.add(delta)
    return answer


def test_every_kind_of_part_is_kept():
    parts = (
        Thinking("H"),
        Thinking("m."),
        Text("At "),
        Text("six."),
        Text("No.", is_refusal=True),
        CallStart(2, "t1", "tide"),
        CallArguments(2, '{"at":'),
        CallArguments(2, "1}"),
        Tokens(Usage(1, 2)),
        Finish("tool_calls"),
        Text("Other", choice=1),
    )
    answer = put_together(*parts)
    call = {"id": "t1", "name": "tide", "arguments": '{"at":1}'}
    nothing = {"text": "Other", "reasoning": "", "refusal": "", "tool_calls": []}
    assert answer.value() == [
        {
            "text": "At six.",
            "reasoning": "Hm.",
            "refusal": "No.",
            "tool_calls": [call],
            "finish_reason": "tool_calls",
        },
        {**nothing, "finish_reason": ""},
    ]
    assert not answer.is_cut


def test_what_has_no_room_is_cut():
    answer = put_together(Text("12345"), Thinking("678"), Text("9"), most=7)
    (choice,) = answer.value()
    assert (choice["text"], choice["reasoning"]) == ("12345", "67")
    assert answer.is_cut


@pytest.mark.parametrize(
    ("limit", "deltas"),
    [
        ("MAX_CHOICES", (Text("a"), Text("b", choice=1))),
        ("MAX_CALLS", (CallStart(0, "k", "n"), CallStart(1, "k", "n"))),
        ("MAX_CALLS", (CallStart(0, "k", "n"), CallArguments(5, "of no call"))),
    ],
)
def test_an_answer_of_too_many_parts_is_cut(monkeypatch, limit, deltas):
    monkeypatch.setattr(answers, limit, 1)
    first = put_together(deltas[0])
    answer = put_together(*deltas)
    assert answer.is_cut
    assert answer.value() == first.value()


# ── The cut of JSON: the newest first ─────────────────────────────────────────────────


SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=300)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner)
    ),
    max_leaves=20,
)


@settings(max_examples=30)
@given(VALUES, st.integers(0, 2000))
def test_what_is_kept_is_json_within_the_room(value: Any, most: int):
    room = Room(most)
    kept = json.loads(json.dumps(room.cut(value)))
    assert len(json.dumps(kept, ensure_ascii=True)) <= 12 * most + 2000
    assert room.is_cut or kept == json.loads(json.dumps(value))


def test_the_last_items_of_a_list_are_kept_whole():
    items = [f"message {number:03} " + "x" * 88 for number in range(1000)]
    room = Room(1000)
    assert room.cut({"messages": items})["messages"][-5:] == items[-5:]
    assert room.is_cut


def test_deep_nesting_ends():
    value: Any = "deep"
    for _ in range(500):
        value = [value]
    room = Room(10_000)
    assert "deep" not in json.dumps(room.cut(value))
    assert room.is_cut


def test_secrets_are_hidden_and_files_are_recognised():
    room = Room(10_000)
    value = {
        "mcp_servers": [{"url": "https://x", "Authorization_Token": "secret"}],
        "image_url": "data:image/png;base64," + "x" * 5000,
        "source": {"type": "base64", "data": "y" * 5000},
    }
    kept = room.cut(value)
    assert kept["mcp_servers"][0]["Authorization_Token"] == HIDDEN
    assert kept["image_url"].startswith("data:image/png;base64,xxx")
    assert len(json.dumps(kept)) < 400
