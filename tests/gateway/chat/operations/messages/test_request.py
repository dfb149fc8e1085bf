"""Every field of a request of Anthropic's shape: translated or refused, as docs/chat.md says."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.chat.errors import InvalidValueError
from gateway.chat.operations.messages import request
from gateway.chat.operations.messages.call_ids import CallIds
from tests.gateway.chat.field_tables import (
    check_row,
    named_in,
    refused,
    rows_of_page,
)
from tests.gateway.chat.operations.messages.request_cases import (
    CACHE,
    CASES,
    HI,
    NOTHING,
    TEXT,
    TOOL,
    said,
    user,
)


def sent(**fields: Any) -> dict[str, Any]:
    body = {"model": "small", "max_tokens": 64, "messages": [HI], **fields}
    return request.translate(body, CallIds())


@pytest.mark.spec(
    "claude-code",
    "beta fields of tools: strict, defer_loading",
    "cache_control wherever it appears, also in turns of the system",
)
@pytest.mark.parametrize("row", CASES)
def test_nothing_vanishes(row):
    check_row(sent, CASES[row], NOTHING)


def test_the_table_is_that_of_the_documentation_and_names_every_known_field():
    assert rows_of_page("Anthropic's Messages") == list(CASES)
    assert request.TRANSLATED - {"model", "stream"} <= named_in(CASES)


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({"messages": None}, "messages: must be a list."),
        *(({"messages": [turn]}, "messages: each must have a role and content.") for turn in ("x", {}, {"role": "user"}, {"role": 5, "content": "x"})),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages: no role 'tool'."),
        ({"messages": [{"role": "user", "content": 5}]}, "messages: content must be a string or a list."),
        (user(5), "messages: a block of the content has no type."),
        (user({"type": "text"}), "messages: text.text must be a string."),
        (user({"type": "image"}), "messages: image needs its source."),
        (user({"type": "tool_result"}), "messages: tool_result.tool_use_id must be a string."),
        (said({"type": "tool_use", "id": "t", "name": "x", "input": "{}"}), "messages: tool_use.input must be an object."),
        ({"system": 5}, "system: content must be a string or a list."),
        ({"tools": 5}, "tools: must be a list."),
        ({"tools": [{"name": "x"}]}, "tools: each must have a name and an input_schema."),
        ({"tools": [TOOL], "tool_choice": {"type": "x"}}, "tool_choice: must be auto, any, none, or a tool's name."),
        ({"tool_choice": {"type": "any"}}, "tool_choice: there are no tools."),
        ({"messages": [{"role": "system", "content": [{"type": "tool_addition"}]}]}, "messages: tool_addition needs its tool."),
        ({"tool_choice": 5}, "tool_choice: must be an object."),
        ({"metadata": 5}, "metadata: must be an object."),
        ({"thinking": 5}, "thinking: must be an object."),
        ({"output_config": {"effort": ["x"]}}, "output_config: effort must be one of low, medium, high, xhigh, max."),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config: a json_schema needs its schema."),
        (
            {"system": [{**TEXT, "cache_control": CACHE}] * 2, "tools": [{**TOOL, "cache_control": CACHE}], **user(*[{**TEXT, "cache_control": CACHE}] * 2)},
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        ),
    ],
)  # fmt: skip
def test_what_is_not_of_the_apis_shape_is_named(fields, detail):
    assert refused(sent, InvalidValueError, fields) == detail


def test_arguments_that_are_nested_too_deeply_are_refused():
    deep: Any = {}
    for _ in range(1100):
        deep = {"a": deep}
    with pytest.raises(InvalidValueError, match="nested too deeply"):
        sent(**said({"type": "tool_use", "id": "t", "name": "x", "input": deep}))
