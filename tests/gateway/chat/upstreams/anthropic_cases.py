"""Requests for Anthropic: for each row of the table in docs/chat.md, what becomes of them."""

from __future__ import annotations

import base64
from typing import Any

from gateway.chat.upstreams import messages
from gateway.configuration.shapes import ADAPTIVE
from tests.gateway.chat.upstreams.anthropic_events import (
    CALL,
    HIDDEN,
    SAID,
    THOUGHT,
    TOOL,
    USE,
)

USER = {"role": "user", "content": "Hi"}
CACHE = {"type": "ephemeral", "ttl": "1h"}
PDF = "data:application/pdf;base64,JVBERi0="
TEXT = "data:text/plain;charset=utf-8;base64," + base64.b64encode(b"tide").decode()
SCHEMA = {"type": "object", "properties": {}}


def sent(way: str = ADAPTIVE, **fields: Any) -> dict[str, Any]:
    """Return what is sent for a request to a model that thinks in this way."""
    body = {"model": "claude", "messages": [USER], **fields}
    return messages.translate(body, model="there", stream=False, thinking=way)


def user(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts), **more}]}


def assistant(**fields: Any) -> dict[str, Any]:
    return {"messages": [USER, {"role": "assistant", **fields}]}


def first(**block: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [block]}]}


def spoken(*blocks: Any) -> dict[str, Any]:
    hi = {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    return {"messages": [hi, {"role": "assistant", "content": list(blocks)}]}


def image(**fields: Any) -> dict[str, Any]:
    return user({"type": "image_url", "image_url": fields})


def document(**source: Any) -> dict[str, Any]:
    return first(type="document", source=source)


def file(**fields: Any) -> dict[str, Any]:
    return user({"type": "file", "file": fields})


def schema(**fields: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": fields}}


def form(schema: Any) -> dict[str, Any]:
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


def thinking(tokens: int, limit: int) -> dict[str, Any]:
    enabled = {"type": "enabled", "budget_tokens": tokens}
    return {"thinking": enabled, "max_tokens": limit}


def adaptive(effort: str) -> dict[str, Any]:
    return {
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": effort},
        "max_tokens": 16384,
    }


FUNCTION: dict[str, Any] = TOOL["function"]
NOTHING: dict[str, Any] = {"max_tokens": 4096}

# For each row of the table: requests, and what is sent for them or why they are refused.
CASES: dict[str, list[tuple[dict[str, Any], dict[str, Any] | str]]] = {
    "messages: system, developer": [
        (
            {
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    USER,
                    {"role": "developer", "content": [{"type": "text", "text": "Now."}]},
                ]
            },
            {"system": "Be brief.\nNow.", **first(type="text", text="Hi")},
        ),
        (
            {"messages": [{"role": "system", "content": [{"type": "image_url"}]}]},
            "content of the type image_url in messages with the role system",
        ),
    ],
    "messages: name": [
        ({"messages": [USER | {"name": "ada"}]}, "messages with the role user: name"),
        (
            {"messages": [{"role": "tool", "tool_call_id": "t", "name": "tide"}]},
            first(type="tool_result", tool_use_id="t", content=[]),
        ),
    ],
    "messages: tool_calls": [
        (assistant(content=None, tool_calls=[CALL]), spoken(USE)),
        (assistant(content="", tool_calls=[{**CALL, "index": 0}]), spoken(USE)),
        (
            assistant(tool_calls=[{"id": "x", "type": "custom", "custom": {}}]),
            "tool calls of the type custom",
        ),
        (assistant(tool_calls=[{**CALL, "extra": 1}]), "tool_calls: extra"),
    ],
    "messages: refusal": [
        (assistant(refusal="No."), spoken({"type": "text", "text": "No."})),
        (assistant(content="Well", refusal=None), spoken(SAID)),
        (
            assistant(content=[{"type": "refusal", "refusal": "No."}]),
            spoken({"type": "text", "text": "No."}),
        ),
    ],
    "messages: thinking_blocks": [
        (
            assistant(content="Well", thinking_blocks=[THOUGHT, HIDDEN], tool_calls=[CALL]),
            spoken(THOUGHT, HIDDEN, SAID, USE),
        ),
        (
            assistant(
                content="Well",
                thinking_blocks=[{**THOUGHT, "index": 0}, {**HIDDEN, "index": 2}],
                tool_calls=[CALL],
            ),
            spoken(THOUGHT, SAID, HIDDEN, USE),
        ),
        (
            assistant(content=[THOUGHT, {"type": "text", "text": "Well"}, HIDDEN]),
            spoken(THOUGHT, SAID, HIDDEN),
        ),
    ],
    "messages: reasoning_content, reasoning, reasoning_details, reasoning_text, reasoning_opaque, reasoning_signature, thinking, extra_content, provider_specific_fields": [
        (
            assistant(content="Well", reasoning_content="Hm.", thinking_blocks=[THOUGHT]),
            spoken(THOUGHT, SAID),
        ),
        (assistant(content="Well", reasoning_content=""), spoken(SAID)),
        (assistant(content="Well", reasoning="Hm."), spoken(SAID)),
        ({"messages": [USER | {"reasoning": "Hm."}]}, "messages with the role user: reasoning"),
    ],
    "messages: parsed, parsed_arguments in tool_calls": [
        (assistant(content="Well", parsed={"at": 1}), spoken(SAID)),
        (
            assistant(tool_calls=[{**CALL, "function": {"name": "tide", "arguments": '{"at":"Brest"}', "parsed_arguments": {}}}]),
            spoken(USE),
        ),
    ],
    "messages: annotations": [
        (
            assistant(content="Well", annotations=[{"type": "url_citation", "url_citation": {"url": "https://x.example"}}]),
            spoken(SAID),
        ),
        ({"messages": [USER | {"annotations": [1]}]}, "messages with the role user: annotations"),
    ],
    "messages: any other field": [
        (assistant(content="x", annotations=[], audio=None), spoken({"type": "text", "text": "x"})),
        (assistant(audio={"id": "x"}), "messages with the role assistant: audio"),
        ({"messages": [{"role": "function"}]}, "messages with the role function; use tool"),
        (assistant(function_call={"name": "f"}), "messages with the role assistant: function_call"),
    ],
    "content: text": [
        (user({"type": "text", "text": "Hi"}), first(type="text", text="Hi")),
        (user({"type": "text", "text": "Hi", "bold": True}), "content of the type text: bold"),
    ],
    "content: image_url": [
        (
            image(url="https://a.example/b.png", detail="high"),
            first(type="image", source={"type": "url", "url": "https://a.example/b.png"}),
        ),
        (
            image(url="data:image/png;name=a;base64,AAAA", detail="auto"),
            first(type="image", source={"type": "base64", "media_type": "image/png", "data": "AAAA"}),
        ),
        (image(url="data:image/svg+xml,%3Csvg"), "data that is not in base64"),
        (image(url="https://example.com/a.png", detail="low"), "image_url: detail"),
        (
            assistant(content=[{"type": "image_url", "image_url": {"url": "x"}}]),
            "content of the type image_url in messages with the role assistant",
        ),
    ],
    "content: file": [
        (
            file(file_data=PDF, filename="a.pdf"),
            first(
                type="document",
                source={"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
                title="a.pdf",
            ),
        ),
        (file(file_data=TEXT), document(type="text", media_type="text/plain", data="tide")),
        (file(file_data="data:image/gif;base64,"), "files of the type image/gif"),
        (file(file_id="file-1"), "file: file_id"),
    ],
    "content: any other type": [
        (user({"type": "input_audio", "input_audio": {}}), "content of the type input_audio"),
        (user(THOUGHT), "content of the type thinking in messages with the role user"),
        (user({"type": "video"}), "content of the type video"),
    ],
    "cache_control": [
        (
            user({"type": "text", "text": "Hi", "cache_control": CACHE}),
            first(type="text", text="Hi", cache_control=CACHE),
        ),
        (
            user({"type": "image_url", "image_url": {"url": "x"}, "cache_control": CACHE}),
            first(type="image", source={"type": "url", "url": "x"}, cache_control=CACHE),
        ),
        (
            {"messages": [USER | {"cache_control": CACHE}]},
            first(type="text", text="Hi", cache_control=CACHE),
        ),
        (
            {
                "messages": [
                    {"role": "system", "content": "Be brief.", "cache_control": CACHE},
                    {"role": "system", "content": "Now."},
                    USER,
                ]
            },
            {
                "system": [
                    {"type": "text", "text": "Be brief.", "cache_control": CACHE},
                    {"type": "text", "text": "Now."},
                ]
            },
        ),
        (
            {"messages": [{"role": "tool", "tool_call_id": "t", "cache_control": CACHE}]},
            first(type="tool_result", tool_use_id="t", content=[], cache_control=CACHE),
        ),
        (
            {"tools": [{**TOOL, "cache_control": CACHE}]},
            {"tools": [{**sent(tools=[TOOL])["tools"][0], "cache_control": CACHE}]},
        ),
        (
            {"tools": [{**TOOL, "function": FUNCTION | {"cache_control": CACHE}}]},
            {"tools": [{**sent(tools=[TOOL])["tools"][0], "cache_control": CACHE}]},
        ),
        ({"cache_control": CACHE}, {"cache_control": CACHE}),
    ],
    "max_completion_tokens, max_tokens": [
        ({}, {"max_tokens": 4096}),
        ({"max_tokens": 0}, {"max_tokens": 0}),
        ({"max_completion_tokens": 7}, {"max_tokens": 7}),
        ({"max_completion_tokens": 7, "max_tokens": 7}, {"max_tokens": 7}),
        ({"max_completion_tokens": 7, "max_tokens": 8}, "max_tokens beside another max_completion_tokens"),
    ],
    "temperature": [
        *(({"temperature": value}, {"temperature": value}) for value in (0, 0.7, -1, 3, "hot")),
        ({"temperature": 1.7}, {"temperature": 1}),
    ],
    "top_p, top_k": [({"top_p": 0.5, "top_k": 3}, {"top_p": 0.5, "top_k": 3})],
    "stop": [
        ({"stop": "END"}, {"stop_sequences": ["END"]}),
        ({"stop": ["A", "B"]}, {"stop_sequences": ["A", "B"]}),
        ({"stop": []}, NOTHING),
        ({"stop": 5}, {"stop_sequences": 5}),
    ],
    "user, safety_identifier, metadata": [
        ({"user": "u-1"}, {"metadata": {"user_id": "u-1"}}),
        ({"safety_identifier": "u-1"}, {"metadata": {"user_id": "u-1"}}),
        ({"metadata": {"user_id": "u-1"}, "user": "u-1"}, {"metadata": {"user_id": "u-1"}}),
        ({"metadata": {}}, NOTHING),
        ({"metadata": {"team": "x"}}, "metadata: team"),
        ({"user": "u-1", "safety_identifier": "u-2"}, "different users in one request"),
    ],
    "service_tier": [
        ({"service_tier": "auto"}, {"service_tier": "auto"}),
        ({"service_tier": "default"}, {"service_tier": "standard_only"}),
        ({"service_tier": "standard_only"}, {"service_tier": "standard_only"}),
        ({"service_tier": "flex"}, "service_tier flex"),
        ({"service_tier": []}, "service_tier []"),
    ],
    "tools": [
        ({"tools": []}, NOTHING),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]},
            {"tools": [{"name": "f", "input_schema": {"type": "object"}, "strict": True}]},
        ),
        ({"tools": [{"type": "custom", "custom": {}}]}, "tools of the type custom"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "returns": {"a": 1}}}]},
            "tools: returns",
        ),
    ],
    "tool_choice": [
        *(
            ({"tools": [TOOL], "tool_choice": name}, {"tool_choice": {"type": kind}})
            for name, kind in (("auto", "auto"), ("none", "none"), ("required", "any"))
        ),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "tide"}}},
            {"tool_choice": {"type": "tool", "name": "tide"}},
        ),
        ({"tool_choice": "auto"}, NOTHING),
        ({"tools": [TOOL], "tool_choice": {"type": "allowed_tools"}}, "tool_choice of the type allowed_tools"),
    ],
    "parallel_tool_calls": [
        (
            {"tools": [TOOL], "parallel_tool_calls": False},
            {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        ),
        ({"tools": [TOOL], "parallel_tool_calls": True}, NOTHING),
        (
            {"tools": [TOOL], "parallel_tool_calls": False, "tool_choice": "none"},
            {"tool_choice": {"type": "none"}},
        ),
    ],
    "response_format": [
        ({"response_format": {"type": "text"}}, NOTHING),
        (schema(name="x", strict=True, schema=SCHEMA), form(SCHEMA)),
        (schema(name="x", description="Tides", schema=SCHEMA), form({"description": "Tides", **SCHEMA})),
        ({"response_format": {"type": "json_object"}}, "response_format json_object"),
        (schema(schema=SCHEMA, example={"a": 1}), "json_schema: example"),
    ],
    "reasoning_effort": [
        ({"reasoning_effort": "none"}, NOTHING),
        ({"reasoning_effort": "minimal"}, adaptive("low")),
        *(({"reasoning_effort": name}, adaptive(name)) for name in ("low", "medium", "high", "xhigh", "max")),
        ({"reasoning_effort": "low", "max_tokens": 100}, {**adaptive("low"), "max_tokens": 100}),
        ({"reasoning_effort": "low", "tools": [TOOL], "tool_choice": "required"}, {"thinking": None, "output_config": {"effort": "low"}}),
        ({"reasoning_effort": "low", "thinking": {"type": "disabled"}}, "reasoning_effort beside thinking"),
        ({"reasoning_effort": "none", "thinking": {"type": "adaptive"}}, "reasoning_effort beside thinking"),
    ],
    "thinking": [
        ({"thinking": {"type": "enabled", "budget_tokens": 9000}}, thinking(9000, 13096)),
        ({"thinking": {"type": "adaptive"}}, {"thinking": {"type": "adaptive"}, "max_tokens": 16384}),
        ({"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}, "max_tokens": 4096}),
    ],
    "output_config": [
        ({"output_config": {"effort": "max"}}, {"output_config": {"effort": "max"}, "max_tokens": 4096}),
        ({"output_config": {"effort": None}}, NOTHING),
        (
            {**schema(schema=SCHEMA), "output_config": {"effort": "low", "task_budget": {"total": 9}}},
            {"output_config": {"effort": "low", "task_budget": {"total": 9}, **form(SCHEMA)["output_config"]}},
        ),
        ({**schema(schema=SCHEMA), "reasoning_effort": "max"}, adaptive("max") | {"output_config": {"effort": "max", **form(SCHEMA)["output_config"]}}),
        ({**schema(schema=SCHEMA), **form(SCHEMA)}, form(SCHEMA)),
        ({"reasoning_effort": "minimal", "output_config": {"effort": "low"}}, adaptive("low")),
        ({"reasoning_effort": "none", "output_config": {"effort": "low"}}, {"thinking": None, "output_config": {"effort": "low"}}),
        ({"reasoning_effort": "high", "output_config": {"effort": "low"}}, "reasoning_effort beside another output_config"),
        ({**schema(schema=SCHEMA), **form({"type": "array"})}, "response_format beside another output_config"),
    ],
    "stream_options": [
        ({"stream_options": {"include_usage": True, "include_obfuscation": False}}, NOTHING),
        ({"stream_options": {"include_obfuscation": True}}, "stream_options: include_obfuscation"),
    ],
    "n": [({"n": 1}, NOTHING), ({"n": 2}, "n"), ({"n": 0}, "n"), ({"n": []}, "n")],
    "seed": [({"seed": None}, NOTHING), ({"seed": 0}, "seed")],
    "frequency_penalty, presence_penalty": [
        ({"frequency_penalty": 0, "presence_penalty": 0.0}, NOTHING),
        ({"frequency_penalty": 0.1}, "frequency_penalty"),
        ({"presence_penalty": -1}, "presence_penalty"),
    ],
    "logit_bias": [({"logit_bias": {}}, NOTHING), ({"logit_bias": {"5": 1}}, "logit_bias")],
    "logprobs, top_logprobs": [
        ({"logprobs": False, "top_logprobs": 0}, NOTHING),
        ({"logprobs": True}, "logprobs"),
        ({"logprobs": True, "top_logprobs": 3}, "logprobs, top_logprobs"),
    ],
    "modalities, audio": [
        ({"modalities": ["text"]}, NOTHING),
        ({"modalities": ["text", "audio"], "audio": {"voice": "x"}}, "modalities, audio"),
    ],
    "functions, function_call": [
        ({"functions": []}, NOTHING),
        ({"function_call": "auto"}, NOTHING),
        ({"functions": [{"name": "f"}], "function_call": "auto"}, "functions; use tools"),
        ({"function_call": {"name": "f"}}, "function_call; use tool_choice"),
    ],
    "store, verbosity": [
        ({"store": False, "verbosity": "medium"}, NOTHING),
        ({"store": True}, "store"),
        ({"verbosity": "low"}, "verbosity"),
    ],
    "any other field": [
        ({"prediction": None}, NOTHING),
        ({"prediction": {"type": "content"}}, "prediction"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"best_of": 2, "x": []}, "best_of, x"),
    ],
}  # fmt: skip
