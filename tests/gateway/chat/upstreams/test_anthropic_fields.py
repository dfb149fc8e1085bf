"""Every field of a request for Anthropic: translated or refused, as the table in docs/chat.md says."""

from __future__ import annotations

import json
import re

import pytest
from django.conf import settings

from gateway.chat.core.errors import InvalidValueError, UnsupportedRequestError
from gateway.chat.upstreams import messages, turns
from tests.gateway.chat.mock_upstream import answers
from tests.gateway.chat.upstreams.anthropic_cases import (
    CACHE,
    CASES,
    HIDDEN,
    NOTHING,
    THOUGHT,
    assistant,
    file,
    schema,
    sent,
    user,
)
from tests.gateway.chat.upstreams.test_anthropic import MESSAGE, TOOL, sent_body


@pytest.mark.spec("gateway", "synchronous: Endpoint does not support request, 400")
@pytest.mark.parametrize("row", CASES)
def test_nothing_vanishes(row):
    for fields, expected in CASES[row]:
        if isinstance(expected, str):
            with pytest.raises(UnsupportedRequestError) as refused:
                sent(**fields)
            assert str(refused.value) == expected
        else:
            body = sent(**fields)
            assert {name: body.get(name) for name in expected} == expected
            if expected is NOTHING:
                plain = {**sent(), "tools": body.get("tools")}
                assert {**body, "tools": body.get("tools")} == plain


def test_the_table_of_the_documentation_has_these_rows():
    page = (settings.BASE_DIR / "docs" / "chat.md").read_text()
    section = page.partition("## Anthropic")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \|[^|]+\|[^|]+\|$", section, re.MULTILINE)[1:]
    assert [row.replace("`", "") for row in rows] == list(CASES)


def test_the_table_names_every_field_that_the_translation_knows():
    named = set(re.findall(r"\w+", " ".join(CASES)))
    known = messages.TRANSLATED | set(messages.WITHOUT_EFFECT)
    known |= {item for fields in turns.FIELDS.values() for item in fields}
    assert known - {"model", "stream", "role", "tool_call_id"} <= named
    assert {item for item in turns.PARTS if "thinking" not in item} <= named


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
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
    with pytest.raises(InvalidValueError) as refused:
        sent(**fields)
    assert str(refused.value) == detail


@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_says_what_is_not_supported(claude, upstream, stream):
    response = claude(stream=stream, seed=5)
    text = "seed" if stream else "Endpoint does not support request: seed"
    assert (response.status_code, response.json()) == (400, {"detail": text})
    assert upstream.requests == []


def test_a_request_with_all_that_is_translated_arrives(claude, upstream):
    upstream.script = answers(MESSAGE)
    assert (
        claude(tools=[TOOL], reasoning_effort="low", cache_control=CACHE).status_code
        == 200
    )
    assert sent_body(upstream)["thinking"]["type"] == "adaptive"
    assert sent_body(upstream)["cache_control"] == CACHE
    assert json.loads(upstream.requests[0].body)["max_tokens"] == 16384
