"""What a request to Anthropic's API says of thinking and length, and what it cannot say. Pure."""

from typing import Any

import pytest

from gateway.chat.errors import InvalidValueError, UnsupportedRequestError
from gateway.chat.upstreams.anthropic.request import translate
from gateway.configuration.shapes import ADAPTIVE, BUDGET, UNASKED

TOOLS = [{"type": "function", "function": {"name": "tide"}}]
SUMMARY = {"type": "adaptive", "display": "summarized"}


def sent(way: str, **fields: Any) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": "x"}], **fields}
    return translate(body, model="there", entry="claude", thinking=way)


def enabled(tokens: int) -> dict[str, Any]:
    return {"type": "enabled", "budget_tokens": tokens}


@pytest.mark.parametrize(
    ("way", "fields", "length", "thinking"),
    [
        (ADAPTIVE, {}, 4096, None),
        (UNASKED, {}, 16_384, None),
        (ADAPTIVE, {"max_tokens": 9, "max_completion_tokens": 8}, 8, None),
        (ADAPTIVE, {"reasoning_effort": "high"}, 16_384, SUMMARY),
        (ADAPTIVE, {"reasoning_effort": "none"}, 4096, None),
        (BUDGET, {"reasoning_effort": "low"}, 4096 + 2048, enabled(2048)),
        # Half of what a client allows is for the text.
        (BUDGET, {"reasoning_effort": "high", "max_tokens": 3000}, 3000, enabled(1500)),
        # A forced call is made without thinking before it.
        (BUDGET, {"reasoning_effort": "low", "tool_choice": "required"}, 4096, None),
        (BUDGET, {"reasoning_effort": "low", "tool_choice": "auto"}, 6144, enabled(2048)),
    ],
)  # fmt: skip
def test_how_long_a_model_answers_and_thinks(way, fields, length, thinking):
    call = sent(way, tools=TOOLS, **fields)
    assert (call["max_tokens"], call.get("thinking")) == (length, thinking)


@pytest.mark.parametrize(
    ("way", "effort", "named"),
    [
        (ADAPTIVE, "minimal", {"effort": "low"}),
        (ADAPTIVE, "medium", {"effort": "medium"}),
        (BUDGET, "medium", None),
        (ADAPTIVE, None, None),
    ],
)
def test_an_effort_is_named_where_no_budget_stands_for_it(way, effort, named):
    assert sent(way, reasoning_effort=effort).get("output_config") == named


@pytest.mark.parametrize("choice", ["auto", "required", "none"])
def test_parallel_calls_can_be_switched_off(choice):
    call = sent(ADAPTIVE, tools=TOOLS, tool_choice=choice, parallel_tool_calls=False)
    is_off = call["tool_choice"].get("disable_parallel_tool_use", False)
    assert is_off == (choice != "none")


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"reasoning_effort": "huge"}, InvalidValueError, "none, minimal, low, medium"),
        (
            {"reasoning_effort": "low", "max_tokens": 2000},
            UnsupportedRequestError,
            "less than 2048 tokens",
        ),
    ],
)
def test_an_effort_that_no_budget_stands_for_is_refused(fields, error, text):
    with pytest.raises(error, match=text):
        sent(BUDGET, **fields)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("data:text/plain,low", "data that is not in base64"),
        ("data:text/csv;base64,QQ==", "files of the type text/csv"),
    ],
)
def test_files_that_the_api_does_not_take_are_refused(url, text):
    part = {"type": "file", "file": {"file_data": url}}
    with pytest.raises(UnsupportedRequestError, match=text):
        sent(ADAPTIVE, messages=[{"role": "user", "content": [part]}])


@pytest.mark.parametrize("data", ["low tide", "/w=="])
def test_a_text_file_that_is_no_text_is_refused(data):
    part = {"type": "file", "file": {"file_data": f"data:text/plain;base64,{data}"}}
    with pytest.raises(InvalidValueError, match="is not of its API's"):
        sent(ADAPTIVE, messages=[{"role": "user", "content": [part]}])
