"""A Responses request as a chat request, which every upstream understands. Pure.

Nothing is stored between requests, so what needs a memory is refused by name. Other fields
without a counterpart are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.chat.apis.base import leave_out
from gateway.chat.apis.responses import items, tools
from gateway.chat.apis.responses.tools import Tools
from gateway.chat.errors import UnsupportedRequestError

# What only a server with a memory has: without it, another answer would come.
STATEFUL = ("previous_response_id", "conversation", "prompt")
SAME_NAME = frozenset(
    {
        *("temperature", "top_p", "user", "metadata", "service_tier", "stream"),
        *("safety_identifier", "prompt_cache_key", "prompt_cache_retention"),
    }
)
# Fields with another name or form in a chat request, and those without an effect.
TRANSLATED = frozenset(
    {
        *("model", "input", "instructions", "tools", "tool_choice"),
        *("parallel_tool_calls", "reasoning", "text", "max_output_tokens"),
        *("include", "stream_options", "client_metadata", "store", "truncation"),
        *STATEFUL,
        *("background",),
    }
)
FORMATS = ("name", "description", "schema", "strict")


def translate(body: Mapping[str, Any], model: str) -> tuple[dict[str, Any], Tools]:
    """Return the chat request and its tools. Raises UnsupportedRequestError."""
    refused = [name for name in STATEFUL if body.get(name) is not None]
    refused += ["background: true"] if body.get("background") else []
    if refused:
        raise UnsupportedRequestError(", ".join(refused))
    leave_out(model, body.keys() - TRANSLATED - SAME_NAME)
    known = tools.read(body.get("tools"), model)
    choice = tools.choice(body.get("tool_choice"), known)
    chat = {
        **{name: body[name] for name in body if name in SAME_NAME},
        "messages": items.messages(body, model),
        **_with_tools(body, known, choice),
        **_options(body),
    }
    return chat, known


def _with_tools(body: Mapping[str, Any], known: Tools, choice: Any) -> dict[str, Any]:
    if not known.functions:
        return {}
    others = {
        "tool_choice": choice,
        "parallel_tool_calls": body.get("parallel_tool_calls"),
    }
    given = {name: value for name, value in others.items() if value is not None}
    return {"tools": known.functions, **given}


def _options(body: Mapping[str, Any]) -> dict[str, Any]:
    reasoning, text = body.get("reasoning") or {}, body.get("text") or {}
    options = {
        "max_completion_tokens": body.get("max_output_tokens"),
        "reasoning_effort": reasoning.get("effort"),
        "verbosity": text.get("verbosity"),
        "response_format": _format(text.get("format")),
    }
    return {name: value for name, value in options.items() if value is not None}


def _format(value: Any) -> dict[str, Any] | None:
    match value:
        case None | {"type": "text"}:
            return None
        case {"type": "json_schema"}:
            schema = {n: value[n] for n in FORMATS if value.get(n) is not None}
            return {"type": "json_schema", "json_schema": schema}
    return {"type": value["type"]}
