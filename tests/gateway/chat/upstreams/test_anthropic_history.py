"""Conversations that other models, clients and frameworks began go on with Anthropic's models."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from gateway.chat.upstreams import turns
from tests.gateway.chat.upstreams.anthropic_cases import (
    CACHE,
    USER,
    assistant,
    first,
    image,
    sent,
    spoken,
    user,
)
from tests.gateway.chat.upstreams.anthropic_events import (
    CALL,
    HIDDEN,
    SAID,
    THOUGHT,
    USE,
)

HI = {"type": "text", "text": "Hi"}
PICTURE = {"type": "image_url", "image_url": {"url": "x"}}


def conversation(*messages: Any) -> dict[str, Any]:
    return {"messages": list(messages)}


def turn(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


def result(content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "t", "content": content}


def called(key: str = "toolu_1", **function: Any) -> dict[str, Any]:
    return assistant(tool_calls=[{"id": key, "function": {"name": "tide", **function}}])


def assert_becomes(fields: Any, expected: Any) -> None:
    body = sent(**fields)
    assert {name: body.get(name) for name in expected} == expected


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u00a0\u2003"])
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # The blank stands in place of BLANK.
        (user(text("BLANK"), PICTURE), first(type="image", source={"type": "url", "url": "x"})),
        (
            conversation(USER, {"role": "assistant", "content": "BLANK"}, USER),
            conversation(turn("user", HI, HI)),
        ),
        (
            conversation(USER, {"role": "assistant", "refusal": "BLANK"}, USER),
            conversation(turn("user", HI, HI)),
        ),
        (
            conversation(
                USER,
                turn("assistant", SAID),
                turn("user", text("BLANK")),
                turn("assistant", {"type": "refusal", "refusal": "BLANK"}, SAID),
            ),
            conversation(turn("user", HI), turn("assistant", SAID, SAID)),
        ),
        (conversation(turn("user", text("BLANK"), HI)), conversation(turn("user", HI))),
        (conversation(result("BLANK")), first(type="tool_result", tool_use_id="t", content=[])),
        (
            conversation(result([text("BLANK"), HI])),
            first(type="tool_result", tool_use_id="t", content=[HI]),
        ),
        (assistant(content="BLANK", tool_calls=[CALL]), spoken(USE)),
        (
            assistant(content="BLANK", thinking_blocks=[{**THOUGHT, "thinking": ""}]),
            spoken({**THOUGHT, "thinking": ""}),
        ),
        # The prefix that is cached ends at the block before.
        (user(HI, text("BLANK", cache_control=CACHE)), first(**HI, cache_control=CACHE)),
        (user(HI, text("BLANK"), cache_control=CACHE), first(**HI, cache_control=CACHE)),
        (user(text("BLANK", cache_control=CACHE), HI), first(**HI)),
        (assistant(content=[THOUGHT, text("BLANK", cache_control=CACHE)]), spoken(THOUGHT)),
        (conversation({"role": "system", "content": "BLANK"}, USER), {"system": None}),
        (
            conversation(
                {"role": "system", "content": "BLANK"},
                {"role": "developer", "content": "Now."},
                USER,
            ),
            {"system": "Now."},
        ),
        (
            conversation(
                {"role": "system", "content": "BLANK"},
                {"role": "system", "content": "Now.", "cache_control": CACHE},
                turn("developer", text("BLANK")),
                USER,
            ),
            {"system": [text("Now.", cache_control=CACHE)]},
        ),
    ],
)  # fmt: skip
def test_text_without_a_letter_is_left_out(fields, expected, blank):
    assert_becomes(_with(fields, blank), expected)


@pytest.mark.parametrize("content", ["", None, []])
@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_the_cache_control_of_an_empty_message_is_left_out(role, content):
    empty = {"role": role, "content": content, "cache_control": CACHE}
    assert sent(messages=[USER, empty]) == sent(messages=[USER])


def _with(value: Any, blank: str) -> Any:
    if isinstance(value, dict):
        return {name: _with(item, blank) for name, item in value.items()}
    if isinstance(value, list):
        return [_with(item, blank) for item in value]
    return blank if value == "BLANK" else value


@pytest.mark.parametrize(("content", "said"), [("Well", [SAID]), ("\n\n", []), (None, [])])  # fmt: skip
@pytest.mark.parametrize("last", [2, 3, -1, 10**30])
def test_calls_stay_behind_thinking_when_text_before_them_is_joined_or_blank(
    content, said, last
):
    blocks = [{**THOUGHT, "index": 1}, {**HIDDEN, "index": last}]
    message = assistant(content=content, thinking_blocks=blocks, tool_calls=[CALL])
    assert_becomes(message, spoken(*said, THOUGHT, HIDDEN, USE))


COPILOT = {"reasoning_text", "reasoning_opaque", "reasoning_signature", "thinking"}


@pytest.mark.parametrize("name", sorted(turns.REASONING | COPILOT))
@pytest.mark.parametrize("value", ["Hm.", [{"type": "reasoning.text", "text": "Hm."}], {"a": 1}, 5])  # fmt: skip
def test_reasoning_without_its_signature_has_no_effect(name, value):
    assert_becomes(assistant(content="Well", **{name: value}), spoken(SAID))
    called_ = assistant(content="Well", tool_calls=[CALL], **{name: value})
    assert_becomes(called_, spoken(SAID, USE))
    alone = conversation(USER, {"role": "assistant", name: value}, USER)
    assert_becomes(alone, conversation(turn("user", HI, HI)))


@pytest.mark.parametrize("name", ["extra_content", "provider_specific_fields"])
def test_a_signature_beside_a_call_of_another_model_has_no_effect(name):
    signed = {name: {"google": {"thought_signature": "c2ln"}}}
    function = {"name": "tide", "arguments": '{"at":"Brest"}', **signed}
    for call in ({**CALL, **signed}, {**CALL, "function": function}):
        assert_becomes(assistant(tool_calls=[call]), spoken(USE))


@pytest.mark.parametrize(
    "part",
    [
        {"type": "reasoning", "text": "Hm."},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "thinking", "thinking": "Hm."},
        {"type": "thinking", "thinking": "Hm.", "signature": ""},
        {"type": "thinking", "thinking": "Hm.", "signature": None},
        {"type": "redacted_thinking", "data": ""},
        {"type": "redacted_thinking"},
    ],
)
def test_a_part_of_reasoning_without_its_signature_has_no_effect(part):
    blocks = {"thinking_blocks": [{**part, "index": 0}, {**THOUGHT, "index": 2}]}
    assert_becomes(assistant(content="Well", **blocks), spoken(SAID, THOUGHT))
    assert_becomes(assistant(thinking_blocks=[part], tool_calls=[CALL]), spoken(USE))
    assert_becomes(assistant(content=[part, SAID]), spoken(SAID))
    assert_becomes(assistant(content=[part], tool_calls=[CALL]), spoken(USE))


@pytest.mark.parametrize(
    "arguments",
    [
        *("null", "[]", '"x"', "1", "true", "1e400", " ", "", "{}", '{"at": "Br', "tide", "\ud800"),
        *(None, [], ["at"], 5),
    ],
)  # fmt: skip
def test_arguments_that_are_no_object_become_an_empty_one(arguments):
    empty = spoken({**USE, "input": {}})
    assert_becomes(called(arguments=arguments), empty)
    assert_becomes(called(), empty)


def test_arguments_that_are_an_object_already_stay_one():
    assert_becomes(called(arguments={"at": "Brest"}), spoken(USE))


MAPPED = [
    *(("functions.tide:0", "functions.tide.0"), ("call_1|fc_2", "call_1:fc_2")),
    *(("call/1+2==", "call.1.2.."), ("Gezeitä", "")),
    *(("x" * 64 + ":1", "x" * 64 + ":2"), ("toolu_1-A", "toolu_1_A")),
]


@pytest.mark.parametrize(
    "turns_",
    [
        # Each: the ids of calls, and those of their results.
        [(["", ""], ["", ""])],
        [(["a", "a", "b", "a"], ["b", "a", "a", "a"])],
        [(["a"], ["a"]), (["a", "c"], ["c", "a"]), (["a"], ["a"])],
        [([""], [""]), (["a:1", "a:1"], ["a:1", "a:1"]), ([""], [""])],
        [(["a", "a", "a_1", "a#1", "a1"], ["a1", "a#1", "a_1", "a", "a"])],
        # Ids of other models.
        *([([*keys], [*keys])] for keys in MAPPED),
    ],
)
def test_ids_become_different_ids_of_the_api(turns_):
    asked, answered = Counter[str](), Counter[str]()
    history: list[Any] = [USER]
    for calls, results in turns_:
        functions = [
            (key, {"name": "tide", "arguments": {"at": nth(asked, key)}})
            for key in calls
        ]
        uses = [{"id": key, "function": function} for key, function in functions]
        history.append({"role": "assistant", "tool_calls": uses})
        history += [
            result(nth(answered, key)) | {"tool_call_id": key} for key in results
        ]
    blocks = [b for one in sent(messages=history)["messages"] for b in one["content"]]
    uses = [b for b in blocks if b["type"] == "tool_use"]
    results = [b for b in blocks if b["type"] == "tool_result"]
    said = {b["id"]: b["input"]["at"] for b in uses}
    assert said == {b["tool_use_id"]: b["content"][0]["text"] for b in results}
    assert len(said) == asked.total()
    assert all(re.fullmatch("[a-zA-Z0-9_-]+", key) for key in said)
    for key in ("a", "toolu_1-A"):  # the first keeps its own
        assert said.get(key, f"0th {key}") == f"0th {key}"


def nth(seen: Counter[str], key: str) -> str:
    """Return which one of its id this is."""
    seen[key] += 1
    return f"{seen[key] - 1}th {key}"


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        ("data:image/jpg;base64", "image/jpeg"),
        ("data:image/JPG;charset=utf-8;base64", "image/jpeg"),
        ("DATA:image/pjpeg; BASE64", "image/jpeg"),
        ("data:image/x-png;base64", "image/png"),
        ("data:image/webp;base64", "image/webp"),
    ],
)
def test_other_names_of_media_types_become_those_of_the_api(head, media_type):
    source = {"type": "base64", "media_type": media_type, "data": "AAAA"}
    assert_becomes(image(url=f"{head},AAAA"), first(type="image", source=source))


@pytest.mark.parametrize(
    ("parameters", "schema"),
    [
        (None, {"type": "object"}),
        ({}, {"type": "object"}),
        ({"properties": {}}, {"type": "object", "properties": {}}),
        ({"type": None, "properties": {}}, {"type": "object", "properties": {}}),
        ({"type": "string"}, {"type": "string"}),  # for the API to refuse
    ],
)
def test_parameters_without_a_type_are_an_object(parameters, schema):
    function = {"name": "tide", "parameters": parameters}
    tools = sent(tools=[{"type": "function", "function": function}])["tools"]
    assert tools == [{"name": "tide", "input_schema": schema}]


def test_results_stand_before_all_else_of_their_turn():
    calls = [
        {"id": key, "function": {"name": "tide", "arguments": "{}"}} for key in "ab"
    ]
    results = [{"role": "tool", "tool_call_id": key, "content": "x"} for key in "ab"]
    spoke = {"role": "assistant", "tool_calls": calls}
    body = sent(**conversation(USER, spoke, results[0], USER, results[1]))
    last = body["messages"][-1]["content"]
    assert [block.get("tool_use_id") for block in last] == ["a", "b", None]
