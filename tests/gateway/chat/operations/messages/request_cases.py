"""Requests of Anthropic's shape: for each row of the table in docs/chat.md, what becomes of them."""

from __future__ import annotations

from typing import Any

HI = {"role": "user", "content": "Hi"}
CACHE = {"type": "ephemeral", "ttl": "1h"}
SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}}
USE = {
    "type": "tool_use",
    "id": "toolu_call_1",
    "name": "tide",
    "input": {"at": "Brest"},
}
ARGUMENTS = '{"at":"Brest"}'
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "tide", "arguments": ARGUMENTS},
}
PNG = {"type": "base64", "media_type": "image/png", "data": "aGk="}
IMAGE = {"type": "image", "source": PNG}
IMAGE_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
TEXT = {"type": "text", "text": "Tides"}
TOOL = {"name": "tide", "description": "When?", "input_schema": SCHEMA, "strict": True}
FUNCTION = {
    "name": "tide",
    "parameters": SCHEMA,
    "description": "When?",
    "strict": True,
}
FORM = {"type": "json_schema", "schema": SCHEMA}
# What only the messages of the user become, and what a request without optional fields does.
NOTHING: dict[str, Any] = {"messages": [HI], "max_tokens": 64}


# A tool that is deferred, what turns do with tools, and what the model can call then.
LATER = {"name": "later", "input_schema": SCHEMA, "defer_loading": True}
LATER_FUNCTION = {
    "type": "function",
    "function": {"name": "later", "parameters": SCHEMA},
}
TOOLS = [TOOL, LATER, {"name": "Placeholder", "defer_loading": True}]


def user(*blocks: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [*blocks]}]}


def said(*blocks: Any) -> dict[str, Any]:
    return {"messages": [HI, {"role": "assistant", "content": [*blocks]}]}


def spoken(**message: Any) -> dict[str, Any]:
    return {"messages": [HI, {"role": "assistant", **message}]}


def result(*content: Any, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": "toolu_call_1", **more}
    return {**block, "content": [*content]} if content else block


def answered(text: str, *more: Any) -> dict[str, Any]:
    message = {"role": "tool", "tool_call_id": "call_1", "content": text}
    return {"messages": [message, *more]}


def thinking(**fields: Any) -> dict[str, Any]:
    return {"thinking": fields, "max_tokens": 64}


def changed(*blocks: Any) -> dict[str, Any]:
    return {"messages": [HI, {"role": "system", "content": [*blocks]}]}


def addition(**tool: Any) -> dict[str, Any]:
    return {"type": "tool_addition", "tool": tool}


REMOVAL = {
    "type": "tool_removal",
    "tool": {"type": "tool_reference", "name": "later"},
}
REFERRED = addition(type="tool_reference", name="later")
NEW = {"name": "new", "input_schema": SCHEMA}
NEW_FUNCTION = {"type": "function", "function": {"name": "new", "parameters": SCHEMA}}
CALLABLE = {"type": "function", "function": FUNCTION}
DEFERRED: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    ({}, []),
    (user(result({"type": "tool_reference", "tool_name": "later"})), [LATER_FUNCTION]),
    (user(result({"type": "tool_reference", "tool_name": "absent"})), []),
    (changed(REFERRED), [LATER_FUNCTION]),
    (changed(REFERRED, REMOVAL), []),
    (changed(addition(type="tool_definition", definition=NEW)), [NEW_FUNCTION]),
    (changed(*[addition(type="tool_definition", definition=NEW)] * 2), [NEW_FUNCTION]),
]

CASES: dict[str, list[tuple[dict[str, Any], dict[str, Any] | str]]] = {
    "system, messages: system": [
        ({"system": "Be brief."}, {"messages": [{"role": "system", "content": "Be brief."}, HI]}),
        (
            {"system": [{"type": "text", "text": "One.", "cache_control": CACHE}, TEXT]},
            {"messages": [{"role": "system", "content": "One.\nTides"}, HI]},
        ),
        (
            {"messages": [HI, {"role": "system", "content": [TEXT]}]},
            {"messages": [HI, {"role": "system", "content": "Tides"}]},
        ),
        ({"system": ""}, NOTHING),
        ({"system": [IMAGE]}, "blocks of the type image"),
    ],
    "messages: user": [
        (user(TEXT, {"type": "text", "text": ""}, TEXT), {"messages": [{"role": "user", "content": "Tides\nTides"}]}),
        (user(TEXT, IMAGE), {"messages": [{"role": "user", "content": [TEXT, IMAGE_PART]}]}),
        (
            user(TEXT, result(TEXT, IMAGE)),
            answered("Tides", {"role": "user", "content": [TEXT, IMAGE_PART]}),
        ),
        (user(result()), answered("")),
        (user({**result(), "content": "low"}), answered("low")),
        (user(result(TEXT, is_error=True)), answered("Error: Tides")),
        (user(result({"type": "tool_reference", "tool_name": "tide"})), answered("The tool tide is available.")),
        (user({"type": "container_upload", "file_id": "f"}), "blocks of the type container_upload"),
        (user({**TEXT, "extra": 1}), "text: extra"),
        (user(result(extra=1)), "tool_result: extra"),
    ],
    "messages: assistant": [
        (said(TEXT, USE), spoken(content="Tides", tool_calls=[CALL])),
        (said(USE), spoken(content=None, tool_calls=[CALL])),
        (
            said({"type": "thinking", "thinking": "Hm.", "signature": "signpost:reasoning"}, TEXT),
            spoken(content="Tides", reasoning="Hm."),
        ),
        (
            said({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "redacted_thinking", "data": "x"}, TEXT),
            spoken(content="Tides"),
        ),
        (said({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}), NOTHING),
        (said({"type": "server_tool_use", "id": "s", "name": "web_search"}), "blocks of the type server_tool_use"),
        (said({**USE, "extra": 1}), "tool_use: extra"),
    ],
    "ids of calls": [
        (
            said({**USE, "id": "toolu_n0_ZnVuY3Rpb25zLnRpZGU6MA"}),
            spoken(content=None, tool_calls=[{**CALL, "id": "functions.tide:0"}]),
        ),
        (said({**USE, "id": "call_1"}), spoken(content=None, tool_calls=[CALL])),
    ],
    "image": [
        (user(IMAGE), {"messages": [{"role": "user", "content": [IMAGE_PART]}]}),
        (
            user({"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}}),
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}]}]},
        ),
        (user({"type": "image", "source": {"type": "file", "file_id": "f"}}), "image with a source of the type file"),
    ],
    "document": [
        (
            user({"type": "document", "source": PDF, "title": "tides.pdf", "context": "Of 2026."}),
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "Of 2026."},
                            {"type": "file", "file": {"filename": "tides.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
                        ],
                    }
                ]
            },
        ),
        (
            user({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "low"}, "title": "T"}),
            {"messages": [{"role": "user", "content": "T\nlow"}]},
        ),
        (
            user({"type": "document", "source": {"type": "content", "content": [TEXT, IMAGE]}, "citations": {"enabled": False}}),
            {"messages": [{"role": "user", "content": [TEXT, IMAGE_PART]}]},
        ),
        (user({"type": "document", "source": {"type": "url", "url": "x"}}), "document with a source of the type url"),
        (user({"type": "document", "source": PDF, "citations": {"enabled": True}}), "citations"),
    ],
    "search_result": [
        (
            user({"type": "search_result", "title": "T", "source": "S", "content": [TEXT]}),
            {"messages": [{"role": "user", "content": "T\nS\nTides"}]},
        ),
    ],
    "tools, tool_choice": [
        ({"tools": [TOOL, {**TOOL, "type": "custom", "cache_control": CACHE, "defer_loading": False}]}, {"tools": [{"type": "function", "function": FUNCTION}] * 2}),
        ({"tools": []}, NOTHING),
        *(
            ({"tools": [TOOL], "tool_choice": choice}, {"tool_choice": becomes})
            for choice, becomes in (
                ({"type": "auto"}, "auto"),
                ({"type": "any"}, "required"),
                ({"type": "none"}, "none"),
                ({"type": "tool", "name": "tide"}, {"type": "function", "function": {"name": "tide"}}),
            )
        ),
        (
            {"tools": [TOOL], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
            {"parallel_tool_calls": False, "tool_choice": "auto"},
        ),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools of the type web_search_20250305"),
        ({"tools": [{**TOOL, "allowed_callers": ["x"]}]}, "tools: allowed_callers"),
        *(({"tools": [*TOOLS], **turns}, {"tools": [CALLABLE, *more]}) for turns, more in DEFERRED),
    ],
    "max_tokens": [({"max_tokens": 5}, {"max_tokens": 5})],
    "temperature, top_p, top_k": [
        ({"temperature": 0.5, "top_p": 0.9, "top_k": 40}, {"temperature": 0.5, "top_p": 0.9, "top_k": 40}),
        ({"temperature": None}, NOTHING),
    ],
    "stop_sequences": [({"stop_sequences": ["END"]}, {"stop": ["END"]}), ({"stop_sequences": []}, NOTHING)],
    "metadata.user_id": [
        ({"metadata": {"user_id": "ada"}}, {"user": "ada"}),
        ({"metadata": {"user_id": "u" * 65}}, {"user": "f20e249d15fa4b9f44ba21d154f62e1efa76ddfdce5d25139a33a4787cee5a8b"}),
        ({"metadata": {"user_id": None}}, NOTHING),
        ({"metadata": {"team": "x"}}, "metadata: team"),
    ],
    "service_tier": [
        ({"service_tier": "auto"}, {"service_tier": "auto"}),
        ({"service_tier": "standard_only"}, {"service_tier": "default"}),
        ({"service_tier": "other"}, "service_tier other"),
    ],
    "thinking, output_config.effort": [
        ({"output_config": {"effort": "max"}}, {"reasoning_effort": "max"}),
        (thinking(type="enabled", budget_tokens=2048), {"reasoning_effort": "low"}),
        (thinking(type="enabled", budget_tokens=8192), {"reasoning_effort": "medium"}),
        (thinking(type="enabled", budget_tokens=8193), {"reasoning_effort": "high"}),
        ({**thinking(type="enabled", budget_tokens=1024), "output_config": {"effort": "high"}}, {"reasoning_effort": "high"}),
        (thinking(type="adaptive"), NOTHING),
        ({**thinking(type="disabled"), "output_config": {"effort": "high"}}, NOTHING),
    ],
    "output_config.format, output_format": [
        *(
            (fields, {"response_format": {"type": "json_schema", "json_schema": {"name": "output", "schema": SCHEMA, "strict": True}}})
            for fields in ({"output_config": {"format": FORM}}, {"output_format": FORM})
        ),
        ({"output_config": {"format": {"type": "grammar"}}}, "output_config: format grammar"),
        ({"output_config": {"task_budget": {"total": 5}}}, "output_config: task_budget"),
    ],
    "cache_control, diagnostics, context_management with clear_thinking_…": [
        ({"cache_control": CACHE, "diagnostics": {"x": 1}}, NOTHING),
        ({"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}, NOTHING),
        ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, "context_management: clear_tool_uses_20250919"),
        (user(*[{**TEXT, "cache_control": CACHE}] * 4), {"messages": [{"role": "user", "content": "\n".join(["Tides"] * 4)}]}),
    ],
    "any other field": [
        ({"mcp_servers": [], "container": None, "speed": "standard"}, NOTHING),
        ({"mcp_servers": [{}], "container": "c", "speed": "fast"}, "mcp_servers, container, speed"),
        ({"inference_geo": "eu"}, "inference_geo"),
    ],
}  # fmt: skip
