"""What servers of OpenAI's shape do differently in an answer: one understanding for both shapes."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.chat.core import answers
from gateway.chat.errors import UpstreamServiceError
from gateway.chat.operations.carried import joined

NAMED = {"name": "tide"}


def part(arguments: Any = "", **fields: Any) -> dict[str, Any]:
    named = {"name": fields.pop("name")} if "name" in fields else {}
    return {**fields, "function": {**named, "arguments": arguments}}


@pytest.mark.parametrize(
    ("_case", "parts", "calls"),
    [
        ("numbered calls", [part(index=0, id="a", **NAMED), part("{}", index=0), part(index=1, id="b", **NAMED), part("{}", index=0)], [0, 0, 1, 0]),
        ("one index for all", [part("{}", index=0, id="a", **NAMED), part("{}", index=0, id="b", **NAMED)], [0, 1]),
        ("no index and no id", [part("{}", **NAMED), part("{}", **NAMED)], [0, 1]),
        ("no index, one id", [part("{", id="a", **NAMED), part("}")], [0, 0]),
        ("another id with each part", [part("{", index=0, id="a", **NAMED), part("}", index=0, id="b")], [0, 0]),
        ("the text null in place of an id", [part("{", index=0, id="a", **NAMED), part("}", index=0, id="null", name="")], [0, 0]),
        ("the name with each part", [part("{", index=0, id="a", **NAMED), part("}", index=0, id="a", **NAMED)], [0, 0]),
        ("the name before the id", [part(index=0, **NAMED), part("{}", index=0, id="a")], [0, 0]),
        ("indices from 1", [part(index=1, id="a", **NAMED), part(index=2, id="b", **NAMED)], [0, 1]),
    ],
)  # fmt: skip
def test_a_part_belongs_to_one_call(_case, parts, calls):
    numbers = answers.CallNumbers()
    assert [numbers.number_of(each) for each in parts] == calls


@pytest.mark.parametrize(
    ("given", "reason"),
    [(None, None), ("", None), ("stop", "stop"), ("model_length", "length"), ("MAX_TOKENS", "length"), ("sensitive", "content_filter"), ("new", "new")],
)  # fmt: skip
def test_finish_reasons_have_openais_names(given, reason):
    assert answers.finish_reason({"finish_reason": given}) == reason


@pytest.mark.parametrize(
    "given", ["insufficient_system_resource", "network_error", "abort"]
)
def test_a_server_that_gave_up_has_failed(given):
    with pytest.raises(UpstreamServiceError, match=given):
        answers.finish_reason({"finish_reason": given})


@pytest.mark.parametrize(
    ("said", "thought"),
    [
        ({}, ("", "")),
        ({"reasoning": "a", "reasoning_details": [{"text": "a"}]}, ("a", "reasoning")),
        ({"reasoning": "", "reasoning_content": "b"}, ("b", "reasoning_content")),
        ({"reasoning_details": [{"text": "a"}, {"summary": "b"}, {"data": "c"}, 5]}, ("ab", "")),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "a"}, 5]}, 5]}, ("a", "")),
        ({"content": "a", "reasoning_details": 5}, ("", "")),
    ],
)  # fmt: skip
def test_what_a_model_thought_is_found_under_each_name(said, thought):
    assert answers.thought_in(said) == thought


def test_details_that_come_bit_by_bit_are_one():
    text, data = {"type": "reasoning.text", "index": 0}, {"type": "reasoning.encrypted"}
    parts: list[Any] = [
        {**text, "text": "a", "signature": None},
        {**text, "text": "b", "signature": "c2ln"},
        {**data, "index": 1, "data": "x"},
        {**data, "index": 1, "data": "y", "id": "z"},
        5,
    ]
    assert joined(parts) == [
        {**text, "text": "ab", "signature": "c2ln"},
        {**data, "index": 1, "data": "xy", "id": "z"},
        5,
    ]
    assert parts[0]["text"] == "a"


def test_some_streams_hold_a_whole_message():
    message = {"content": "a"}
    assert answers.said_in({"message": message}) == message
    assert answers.said_in({"delta": {}, "message": message}) == message
    assert answers.said_in({"delta": 5}) == {}
