"""Answers in the log, put together from their deltas."""

import pytest

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
