"""Requests of the Responses API as the upstream gets them, and what is refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.chat.errors import ChatError
from gateway.chat.operations.carried import Carrier
from gateway.chat.operations.responses.request import translate
from gateway.configuration.shapes import ModelEntry
from tests.gateway.chat.mock_upstream import COMPLETION, answers
from tests.gateway.chat.operations.responses.harness import (
    PATCH,
    TIDE,
    answer,
    create,
)

ENTRY = ModelEntry("small", "openai", ())
FUNCTION = {
    "type": "function",
    "function": {name: value for name, value in TIDE.items() if name != "type"},
}
UNSUPPORTED = "Endpoint does not support request: "


def sent(**fields: Any) -> dict[str, Any]:
    return translate({"input": "Hello", **fields}, ENTRY).body


def messages(*items: Any, entry: ModelEntry = ENTRY) -> Any:
    return translate({"input": list(items)}, entry).body["messages"]


def test_instructions_and_a_text_are_messages():
    assert sent(instructions="Be brief.", stream=True, temperature=0.5) == {
        "stream": True,
        "temperature": 0.5,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
        ],
    }


def test_options_have_their_names_in_a_chat_request():
    schema = {"name": "out", "schema": {"type": "object"}, "strict": True}
    body = sent(
        max_output_tokens=9,
        reasoning={"effort": "low", "summary": "auto"},
        text={"verbosity": "low", "format": {"type": "json_schema", **schema}},
        tools=[TIDE],
        tool_choice={"type": "function", "name": "tide"},
        parallel_tool_calls=False,
        include=["reasoning.encrypted_content"],
        prompt_cache_key="k",
        client_metadata={"x-codex-installation-id": "1"},
        store=False,
        truncation="disabled",
        background=False,
        previous_response_id=None,
        stream_options={"include_obfuscation": False},
        service_tier="auto",
        top_k=4,
    )
    del body["messages"]
    assert body == {
        "max_completion_tokens": 9,
        "reasoning_effort": "low",
        "verbosity": "low",
        "response_format": {"type": "json_schema", "json_schema": schema},
        "tools": [FUNCTION],
        "tool_choice": {"type": "function", "function": {"name": "tide"}},
        "parallel_tool_calls": False,
        "prompt_cache_key": "k",
        "service_tier": "auto",
        "top_k": 4,  # what is not known goes to the upstream
    }
    assert sent(text={"format": {"type": "json_object"}})["response_format"] == {
        "type": "json_object"
    }
    assert sent(tool_choice="auto", parallel_tool_calls=True).keys() == {"messages"}


def test_only_openais_shape_has_a_key_of_the_cache():
    entry = ModelEntry("claude", "anthropic", ())
    body = {"input": "x", "prompt_cache_key": "k", "prompt_cache_retention": "24h"}
    assert translate(body, entry).body.keys() == {"messages"}


def test_what_the_assistant_says_and_calls_in_a_row_is_one_message():
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    text = {"type": "output_text", "text": "I look.", "annotations": []}
    assert messages(
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "user", "content": "When is high tide?"},
        {**reasoning, "encrypted_content": "another server's"},
        {"type": "message", "role": "assistant", "content": [text]},
        {"type": "function_call", "call_id": "1", "name": "tide", "arguments": "{}"},
        {"type": "function_call", "call_id": "2", "name": "tide", "arguments": ""},
        {"type": "function_call_output", "call_id": "1", "output": ""},
        {"type": "function_call_output", "call_id": "2", "output": "06:12"},
        {"role": "assistant", "content": "At 06:12."},
        {"role": "user", "content": [{"type": "input_text", "text": "Thanks"}]},
    ) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "When is high tide?"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": key, "type": "function", "function": {"name": "tide", "arguments": text}}
                for key, text in (("1", "{}"), ("2", "{}"))
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": ""},
        {"role": "tool", "tool_call_id": "2", "content": "06:12"},
        {"role": "assistant", "content": "At 06:12."},
        {"role": "user", "content": "Thanks"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("_case", "order", "expected"),
    [
        ("a message between a call and its result", "c1 u r1", "c1 r1 u"),
        ("between the results of two calls", "c1 c2 r1 u r2 u", "c1,c2 r1 r2 u u"),
        (
            "a call among the results of others",
            "c1 c2 r1 c3 r2 r3",
            "c1,c2,c3 r1 r2 r3",
        ),
        ("rounds of calls", "c1 r1 u c2 u r2", "c1 r1 u c2 r2 u"),
        ("a call without a result", "c1 u u", "c1 u u"),
        ("an id that begins again", "c1 r1 u c1 u", "c1 r1 u c1 u"),
    ],
)
def test_results_follow_their_calls_at_once(_case, order, expected):
    """OpenAI's API and others refuse anything between them."""
    items: dict[str, Any] = {
        "c": {"type": "function_call", "name": "x", "arguments": "{}"},
        "r": {"type": "function_call_output", "output": ""},
        "u": {"role": "user", "content": "u"},
    }
    made = messages(*({**items[n[0]], "call_id": n[1:]} for n in order.split()))

    def shown(message: dict[str, Any]) -> str:
        if calls := message.get("tool_calls"):
            return ",".join(f"c{call['id']}" for call in calls)
        return "u" if message["role"] == "user" else f"r{message['tool_call_id']}"

    assert " ".join(map(shown, made)) == expected


def test_images_of_results_follow_all_results():
    image = {
        "type": "input_image",
        "image_url": "data:image/png;base64,AA",
        "detail": "low",
    }
    part = {
        "type": "image_url",
        "image_url": {"url": image["image_url"], "detail": "low"},
    }
    text = {"type": "input_text", "text": "a page"}
    calls = [
        {"type": "function_call", "call_id": key, "name": "see", "arguments": "{}"}
        for key in "12"
    ]
    results = [
        {"type": "function_call_output", "call_id": "1", "output": [text, image]},
        {"type": "function_call_output", "call_id": "2", "output": "none"},
    ]
    assert messages(*calls, *results)[1:] == [
        {"role": "tool", "tool_call_id": "1", "content": "a page"},
        {"role": "tool", "tool_call_id": "2", "content": "none"},
        {"role": "user", "content": [part]},
    ]
    assert messages(*calls, *results, {"role": "user", "content": "And?"})[-2:] == [
        {"role": "user", "content": [part]},
        {"role": "user", "content": "And?"},
    ]


def test_parts_of_the_user_are_translated():
    file = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}
    audio = {"data": "AA", "format": "wav"}
    [message] = messages(
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "See"},
                {"type": "input_file", **file},
                {"type": "input_audio", "input_audio": audio},
            ],
        }
    )
    assert message["content"] == [
        {"type": "text", "text": "See"},
        {"type": "file", "file": file},
        {"type": "input_audio", "input_audio": audio},
    ]


def test_a_custom_tool_is_a_function_that_takes_a_text():
    body = sent(tools=[PATCH], tool_choice={"type": "custom", "name": "apply_patch"})
    [tool] = body["tools"]
    assert tool["function"]["name"] == "apply_patch"
    assert 'start: "x"' in tool["function"]["description"]
    assert tool["function"]["parameters"]["required"] == ["input"]
    [call, result] = messages(
        {"type": "custom_tool_call", "call_id": "1", "name": "apply_patch", "input": 'a"b'},
        {"type": "custom_tool_call_output", "call_id": "1", "output": "Done"},
    )  # fmt: skip
    [only] = call["tool_calls"]
    assert json.loads(only["function"]["arguments"]) == {"input": 'a"b'}
    assert result == {"role": "tool", "tool_call_id": "1", "content": "Done"}


def test_tools_of_a_namespace_have_its_name_before_theirs(gateway, upstream):
    space = {
        "type": "namespace",
        "name": "harbour",
        "description": "",
        "tools": [TIDE],
    }
    function = {"name": "harbour__tide", "arguments": "{}"}
    message = {"tool_calls": [{"id": "1", "function": function}]}
    upstream.script = answers(
        {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    )
    [item] = answer(gateway, tools=[space])["output"]
    assert (item["name"], item["namespace"]) == ("tide", "harbour")
    [tool] = upstream.requests[0].json["tools"]
    assert tool["function"]["name"] == "harbour__tide"
    assert messages({**item})[0]["tool_calls"][0]["function"] == function


def test_allowed_tools_are_the_only_ones():
    other = {**TIDE, "name": "other"}
    choice = {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": "tide"}],
    }
    body = sent(tools=[TIDE, other], tool_choice=choice)
    assert (body["tools"], body["tool_choice"]) == ([FUNCTION], "required")


def test_allowed_tools_of_a_namespace_are_kept():
    space = {"type": "namespace", "name": "sea", "tools": [TIDE]}
    allowed = {"type": "function", "namespace": "sea", "name": "tide"}
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [allowed]}
    body = sent(tools=[TIDE, space], tool_choice=choice)
    assert [tool["function"]["name"] for tool in body["tools"]] == ["sea__tide"]


# ── What an upstream wants back ─────────────────────────────────────────────────────


def test_reasoning_goes_back_to_the_endpoint_that_gave_it():
    blocks = [{"type": "thinking", "thinking": "Hm", "signature": "s"}]
    packed = Carrier("small").encrypted_content({"thinking_blocks": blocks})
    items: tuple[dict[str, Any], ...] = (
        {"type": "reasoning", "summary": [], "encrypted_content": packed},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "reasoning", "summary": [], "encrypted_content": packed},
        {"type": "function_call", "call_id": "2", "name": "f", "arguments": "{}"},
    )
    [message] = messages(*items)
    assert message["thinking_blocks"] == blocks * 2
    [message] = messages(*items, entry=ModelEntry("other", "anthropic", ()))
    assert "thinking_blocks" not in message
    # It belongs to what the assistant says next, and to nothing that another says.
    user = {"role": "user", "content": "x"}
    assert messages(items[0], user, items[1])[1].keys() == {
        "role",
        "content",
        "tool_calls",
    }


def test_a_call_takes_its_signature_along():
    extra = {"google": {"thought_signature": "s" * 99}}
    carrier = Carrier("small")
    key = carrier.call_id("call_1", extra)
    assert carrier.call_id("call_1", None) == "call_1"
    call = {"type": "function_call", "call_id": key, "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": key, "output": "x"}
    [message, tool] = messages(call, result)
    [only] = message["tool_calls"]
    assert (only["id"], only["extra_content"]) == ("call_1", extra)
    assert tool["tool_call_id"] == "call_1"
    [message, _] = messages(call, result, entry=ModelEntry("other", "openai", ()))
    assert "extra_content" not in message["tool_calls"][0]


@pytest.mark.parametrize(
    "text",
    ["", "x", "sp1.", "sp1.!", "sp1.AA", "sp1.W10=", 5, None, "sp1.eyJ4IjoxfQ=="],
)
def test_what_others_encrypted_has_no_effect(text):
    item = {"type": "reasoning", "summary": [], "encrypted_content": text}
    say = {"role": "assistant", "content": "x"}
    assert messages(item, say) == [{"role": "assistant", "content": "x"}]
    call_id = f"a.{text}"
    call = {"type": "function_call", "call_id": call_id, "name": "f", "arguments": ""}
    assert messages(call)[0]["tool_calls"][0]["id"] in {call_id, "a"}


def test_an_effort_of_none_needs_no_reasoning(gateway, upstream):
    upstream.script = answers(COMPLETION)
    gateway.declare(supports=frozenset())
    assert create(gateway, reasoning={"effort": "none"}).status_code == 200


def test_nothing_that_can_be_sent_is_an_internal_error():
    values: list[Any] = [None, 0, "", [], {}, [None], [{}], [[]], {"type": "x"}, True]
    names = ("input", "instructions", "tools", "tool_choice", "reasoning", "text")
    for name in (*names, "include", "background", "store", "top_logprobs"):
        for value in values:
            try:
                translate({"input": "x", name: value}, ENTRY)
            except ChatError:
                continue
