"""Every field of a request for Anthropic: translated or refused, as the table in docs/chat.md says."""

from __future__ import annotations

import pytest

from gateway.chat.errors import InvalidValueError, UnsupportedRequestError
from gateway.chat.upstreams import messages, turns
from tests.gateway.chat.field_tables import (
    check_row,
    named_in,
    refused,
    rows_of_page,
)
from tests.gateway.chat.mock_upstream import answers
from tests.gateway.chat.upstreams.anthropic_cases import (
    CACHE,
    CASES,
    NOTHING,
    adaptive,
    assistant,
    file,
    schema,
    sent,
    user,
)
from tests.gateway.chat.upstreams.anthropic_events import (
    HIDDEN,
    MESSAGE,
    THOUGHT,
    TOOL,
    sent_body,
)


@pytest.mark.spec("gateway", "synchronous: Endpoint does not support request, 400")
@pytest.mark.parametrize("row", CASES)
def test_nothing_vanishes(row):
    check_row(sent, CASES[row], NOTHING)


def test_the_table_is_that_of_the_documentation_and_names_every_known_field():
    assert rows_of_page("Anthropic\n") == list(CASES)
    known = messages.TRANSLATED | set(messages.WITHOUT_EFFECT)
    known |= {item for fields in turns.FIELDS.values() for item in fields}
    known |= {item for item in turns.PARTS if "thinking" not in item}
    assert known - {"model", "stream", "role", "tool_call_id"} <= named_in(CASES)


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({"messages": None}, "messages: must be a list."),
        *(({"messages": [item]}, "messages: each must be an object with a role.") for item in ("x", {"role": 5})),
        ({"messages": [{"role": "user", "content": 5}]}, "messages: content must be a string or a list."),
        (user(5), "messages: a part of the content has no type."),
        (assistant(tool_calls=5), "messages: tool_calls must be a list."),
        (assistant(tool_calls=[{}]), "messages: a tool call needs id, name and arguments."),
        ({"tools": 5}, "tools: must be a list."),
        ({"tools": [{}]}, "tools: each must be a function with a name."),
        ({"tools": [TOOL], "tool_choice": 5}, "tool_choice: not one of OpenAI's forms."),
        ({"stream_options": 5}, "stream_options: must be an object."),
        ({"metadata": []}, "metadata: must be an object."),
        ({"thinking": "yes"}, "thinking: must be an object."),
        ({"output_config": "high"}, "output_config: must be an object."),
        ({"parallel_tool_calls": 1}, "parallel_tool_calls: must be a boolean."),
        ({"tool_choice": "required"}, "tool_choice: there are no tools."),
        (
            {"reasoning_effort": ["low"]},
            "reasoning_effort: must be one of none, minimal, low, medium, high, xhigh, max.",
        ),
        ({"response_format": 5}, "response_format: must be an object with a type."),
        (schema(name="x"), "response_format: a json_schema needs its schema."),
        ({"tools": [{**TOOL, "cache_control": 5}]}, "cache_control: must be an object."),
        (user({"type": "text", "text": 5}), "messages: a part of the type text has no text."),
        (user({"type": "image_url"}), "messages: an image needs its url."),
        (user({"type": "file"}), "messages: a part of the type file has no file."),
        (file(file_data="JVBERi0="), "messages: file_data must be a data URL."),
        (file(file_data="data:text/plain;base64,/w=="), "messages: a file is not text in UTF-8."),
        (file(file_data="data:text/plain;base64,?"), "messages: a file is not text in UTF-8."),
        (assistant(thinking_blocks=5), "messages: thinking_blocks must be a list."),
        *(
            (
                assistant(thinking_blocks=[block]),
                "messages: a thinking block needs its text and signature, or its data.",
            )
            for block in (5, {**THOUGHT, "thinking": 5}, {**THOUGHT, "signature": 5}, {**HIDDEN, "data": 5})
        ),
    ],
)  # fmt: skip
def test_what_has_not_the_shape_of_openai_is_a_bad_request(fields, detail):
    assert refused(sent, InvalidValueError, fields) == detail


@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_says_what_is_not_supported(claude, upstream, stream):
    response = claude(stream=stream, seed=5)
    text = "seed" if stream else "Endpoint does not support request: seed"
    assert (response.status_code, response.json()) == (400, {"detail": text})
    assert upstream.requests == []


def test_a_request_is_translated_for_the_way_in_which_the_model_thinks(
    gateway, upstream
):
    upstream.script = answers(MESSAGE)
    for way, thinking in (("adaptive", "adaptive"), ("budget", "enabled")):
        gateway.declare(upstream="anthropic", thinking=way)
        fields = {"tools": [TOOL], "reasoning_effort": "low", "cache_control": CACHE}
        assert gateway.post(**fields).status_code == 200
        assert sent_body(upstream)["thinking"]["type"] == thinking
        assert sent_body(upstream)["cache_control"] == CACHE


@pytest.mark.parametrize(
    ("fields", "tokens", "limit"),
    [
        ({"reasoning_effort": "minimal"}, 1024, 5120),
        ({"reasoning_effort": "low"}, 2048, 6144),
        ({"reasoning_effort": "medium"}, 8192, 12288),
        ({"reasoning_effort": "high"}, 16384, 20480),
        ({"reasoning_effort": "xhigh"}, 32768, 36864),
        ({"reasoning_effort": "max"}, 49152, 53248),
        ({"reasoning_effort": "high", "max_tokens": 5000}, 2500, 5000),
        ({"reasoning_effort": "none"}, None, 4096),
        ({}, None, 4096),
    ],
)
def test_a_model_with_budgets_thinks_with_so_many_tokens(fields, tokens, limit):
    body = sent("budget", **fields)
    enabled = {"type": "enabled", "budget_tokens": tokens}
    assert body.get("thinking") == (enabled if tokens else None)
    assert body["max_tokens"] == limit
    assert "output_config" not in body


ENABLED = {"type": "enabled", "budget_tokens": 9000}


@pytest.mark.parametrize(
    ("way", "effort", "given", "expected"),
    [
        ("budget", "low", ENABLED, {"thinking": ENABLED, "output_config": None}),
        ("budget", "low", {"type": "enabled"}, {"thinking": ENABLED | {"budget_tokens": 2048}}),
        *(
            (way, "low", given, {"thinking": given, "output_config": {"effort": "low"}})
            for way in ("adaptive", "unasked")
            for given in (ENABLED, {"type": "adaptive"}, {"type": "adaptive", "display": "omitted"})
        ),
        ("adaptive", "low", {"type": "enabled"}, adaptive("low")),
        *(
            (way, "none", {"type": "disabled"}, {"thinking": {"type": "disabled"}, "output_config": None})
            for way in ("adaptive", "unasked", "budget")
        ),
    ],
)  # fmt: skip
def test_an_effort_can_stand_beside_thinking_that_agrees(way, effort, given, expected):
    body = sent(way, reasoning_effort=effort, thinking=given)
    assert {name: body.get(name) for name in expected} == expected


def test_a_budget_needs_room_for_itself_and_the_text():
    with pytest.raises(UnsupportedRequestError, match="less than 2048 tokens"):
        sent("budget", reasoning_effort="low", max_tokens=2047)


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({}, 16384),
        ({"reasoning_effort": "none"}, 16384),
        ({"output_config": {"effort": "max"}}, 16384),
        ({"thinking": {"type": "adaptive"}}, 16384),
        ({"thinking": {"type": "disabled"}}, 4096),
        ({"max_tokens": 7}, 7),
    ],
)
def test_a_model_that_thinks_unasked_has_room_for_it(fields, limit):
    assert sent("unasked", **fields)["max_tokens"] == limit
    asked = sent("unasked", reasoning_effort="high")
    assert asked["thinking"] == {"type": "adaptive", "display": "summarized"}
