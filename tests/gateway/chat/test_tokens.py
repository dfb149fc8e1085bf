"""Tokens: read from what upstreams report, whatever that is, or estimated from text."""

from typing import Any

import orjson
import pytest

from gateway import json
from gateway.chat.tokens import MAX_TOKENS, Usage, estimate, prompt_length

SUMS = {"prompt_tokens": 100, "completion_tokens": 50}
NONSENSE = [-1, 2**31, 10**30, "9", 9.5, 1e30, float("inf"), float("nan"), True, [9], {"n": 9}]  # fmt: skip


@pytest.mark.parametrize(
    ("_case", "usage", "expected"),
    [
        ("sums alone", {}, (0, 0, 0)),
        ("a cache", {"prompt_tokens_details": {"cached_tokens": 60}}, (60, 0, 0)),
        ("a cache that was written", {"prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 5}}, (60, 5, 0)),
        ("reasoning", {"completion_tokens_details": {"reasoning_tokens": 40}}, (0, 0, 40)),
        (
            "more than there are",
            {
                "prompt_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 999},
                "completion_tokens_details": {"reasoning_tokens": 999},
            },
            (80, 20, 50),
        ),
        ("details that are null", {"prompt_tokens_details": None, "completion_tokens_details": None}, (0, 0, 0)),
        ("details that are no objects", {"prompt_tokens_details": [1], "completion_tokens_details": "x"}, (0, 0, 0)),
    ],
)  # fmt: skip
def test_details_are_parts_of_the_sums(_case, usage, expected):
    assert Usage.read(SUMS | usage) == Usage(100, 50, *expected)


@pytest.mark.parametrize("value", NONSENSE)
def test_nonsense_in_the_details_counts_for_nothing(value):
    usage: dict[str, Any] = SUMS | {
        "prompt_tokens_details": {"cached_tokens": value, "cache_write_tokens": value},
        "completion_tokens_details": {"reasoning_tokens": value},
        "total_tokens": value,
    }
    assert Usage.read(usage) == Usage(100, 50)


@pytest.mark.parametrize("value", NONSENSE)
def test_nonsense_in_a_sum_is_no_usage(value):
    for name in SUMS:
        assert Usage.read(SUMS | {name: value}) is None
    for usage in ({}, {"total_tokens": value}, {"total_tokens": None}):
        assert Usage.read(usage) is None


def sums(prompt: Any, completion: Any, total: Any) -> dict[str, Any]:
    return dict(zip((*SUMS, "total_tokens"), (prompt, completion, total), strict=True))


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        # Gemini and xAI: the total alone counts what the model thought.
        (sums(20, 151, 553), (20, 533)),
        (sums(21, 0, 81), (21, 60)),
        (sums(9, 2, 11), (9, 2)),
        (sums(9, 2, 5), (9, 2)),
        (sums(9, 2, "x"), (9, 2)),
        ({"prompt_tokens": 9, "total_tokens": 11}, (9, 2)),
        (sums(9, None, 11), (9, 2)),
        (dict.fromkeys(SUMS, MAX_TOKENS), (MAX_TOKENS, MAX_TOKENS)),
        ({"prompt_tokens": 9}, (9, None)),
        ({"prompt_tokens": 9, "completion_tokens": None}, (9, None)),
        (sums(9, None, 9), (9, None)),
        (sums(9, 0, 9), (9, 0)),
        # The names of the Responses API.
        ({"input_tokens": 9, "output_tokens": 2}, (9, 2)),
        ({"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}, (9, 2)),
        ({"input_tokens": 9, "output_tokens": 0}, (9, 0)),
        ({"input_tokens": 9}, (9, None)),
        (
            {
                "input_tokens": 9,
                "output_tokens": 8,
                "input_tokens_details": {"cached_tokens": 5},
                "output_tokens_details": {"reasoning_tokens": 7},
            },
            (9, 8, 5, 0, 7),
        ),
    ],
)
def test_what_the_sums_leave_out_follows_from_the_total(usage, expected):
    assert Usage.read(usage) == Usage(*expected)
    exact = json.loads(orjson.dumps(usage))
    assert Usage.read(exact) == Usage(*expected)


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        (Usage(9, None), Usage(9, 2), Usage(9, 2)),
        (Usage(9, 2, 5), Usage(0, 0), Usage(9, 2, 5)),
        (Usage(9, 2), Usage(9, None), Usage(9, 2)),
        (Usage(9, None), Usage(9, None), Usage(9, None)),
        (None, Usage(9, 2), Usage(9, 2)),
    ],
)
def test_numbers_of_a_stream_never_fall(earlier, later, expected):
    assert later.at_least(earlier) == expected


@pytest.mark.parametrize(
    ("characters", "tokens"),
    [(0, 0), (1, 1), (4, 1), (5, 2), (400, 100), (10**12, MAX_TOKENS)],
)
def test_four_characters_are_about_one_token(characters, tokens):
    assert estimate(characters) == tokens


def test_only_text_counts_as_text():
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "tide", "arguments": "{}"},
    }
    signed = {"extra_content": {"google": {"thought_signature": "gAAAA"}}}
    messages = [
        {"role": "user", "content": "Grüße"},
        {"role": "user", "content": [{"type": "text", "text": "four"}, None, True, [["deep"]]]},
        {"role": "assistant", "content": None, "tool_calls": [call | signed]},
        {"type": "reasoning", "encrypted_content": "gAAAA"},
        {"type": "thinking", "thinking": "Hm", "signature": "c2ln", "index": 0, "cache_control": {"type": "x"}},
        {"role": "tool", "tool_call_id": "call_1", "content": "high"},
    ]  # fmt: skip
    body = {"model": "small", "user": "nobody", "messages": messages}
    assert prompt_length(body) == len("GrüßefourdeeptideHm{}high")
    names = ("functions", "tools", "system", "instructions", "input", "prompt")
    assert prompt_length(dict.fromkeys(names, "four")) == 4 * len(names)


def test_text_is_found_however_deeply_it_is_nested():
    deep: Any = "text"
    for _ in range(50_000):
        deep = [deep]
    assert prompt_length({"input": deep}) == 4
    while isinstance(deep, list):  # freed level by level
        deep = deep.pop()


def test_media_are_about_as_many_tokens_whatever_their_data():
    kinds = ("image_url", "image", "input_image", "input_audio", "audio", "file", "input_file", "document")  # fmt: skip
    data = {"source": {"type": "base64", "data": "x" * 99}}
    parts = [{"type": kind, **data} for kind in kinds]
    hidden = {"type": "redacted_thinking", "data": "x" * 99}
    assert prompt_length({"messages": [*parts, hidden]}) == 4 * 1500 * len(kinds)
