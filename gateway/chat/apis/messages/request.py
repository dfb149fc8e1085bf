"""Requests of Anthropic's Messages API as chat requests. Pure.

Fields without a counterpart are left out; content without one is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.chat.apis.base import leave_out, translating
from gateway.chat.apis.messages import turns
from gateway.chat.apis.messages.format import TOOL_CHOICES
from gateway.chat.errors import InvalidValueError

SAME_NAME = ("max_tokens", "temperature", "top_p", "top_k")
TRANSLATED = frozenset(
    {
        *("model", "messages", "system", "stream", *SAME_NAME, "stop_sequences"),
        *("tools", "tool_choice", "thinking"),
        "output_config",
        # Without an effect on other upstreams, which cache by themselves.
        *("cache_control", "context_management", "diagnostics", "metadata"),
    }
)
# Up to how many tokens of thinking an effort asks for, as the other direction has it.
BUDGETS = ((2048, "low"), (8192, "medium"))
CHOICES = {name: choice for choice, name in TOOL_CHOICES.items()}


def translate(body: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return a chat request, without the name of the model.

    Raises UnsupportedRequestError for content without a counterpart. Values that an upstream can
    check are passed on.
    """
    leave_out(model, body.keys() - TRANSLATED)
    translated = {
        "messages": turns.messages(body),
        **{name: body[name] for name in SAME_NAME if body.get(name) is not None},
        **({"stop": body["stop_sequences"]} if body.get("stop_sequences") else {}),
        **_tools(body, model),
        **_effort(body),
        **_format(body, model),
    }
    return {**translated, "stream": True} if body.get("stream") else translated


def _effort(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the effort that a request names, or that its budget to think with stands for.

    Adaptive thinking leaves it to the model.
    """
    config, thinking = body.get("output_config") or {}, body.get("thinking") or {}
    effort, budget = config.get("effort"), thinking.get("budget_tokens")
    if thinking.get("type") == "disabled":
        return {}
    if effort is None and thinking.get("type") == "enabled" and isinstance(budget, int):
        effort = next((name for most, name in BUDGETS if budget <= most), "high")
    return {} if effort is None else {"reasoning_effort": effort}


def _format(body: Mapping[str, Any], model: str) -> dict[str, Any]:
    config = body.get("output_config") or {}
    match config.get("format"):
        case None:
            return {}
        case {"type": "json_schema", "schema": schema}:
            named = {"name": "output", "schema": schema, "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        case other:
            leave_out(model, (f"output_config.format {other['type']}",))
            return {}


def _tools(body: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return the tools and the choice; tools that a server of the API has itself are left out."""
    choice = body.get("tool_choice") or {}
    tools = body.get("tools") or ()
    with translating("tools"):
        functions = [function for tool in tools if (function := _function(tool, model))]
    if not functions:
        return {}
    is_single = choice.get("disable_parallel_tool_use") is True
    return {
        "tools": functions,
        **({"tool_choice": _choice(choice)} if choice else {}),
        **({"parallel_tool_calls": False} if is_single else {}),
    }


def _function(tool: Mapping[str, Any], model: str) -> dict[str, Any] | None:
    if (kind := tool.get("type", "custom")) != "custom":
        leave_out(model, (f"tools.{kind}",))
        return None
    optional = {key: tool.get(key) for key in ("description", "strict")}
    given = {key: value for key, value in optional.items() if value}
    function = {"name": tool["name"], "parameters": tool["input_schema"], **given}
    return {"type": "function", "function": function}


def _choice(choice: Mapping[str, Any]) -> Any:
    match choice:
        case {"type": "tool", "name": name}:
            return {"type": "function", "function": {"name": name}}
        case {"type": str(kind)} if kind in CHOICES:
            return CHOICES[kind]
    raise InvalidValueError("tool_choice: must be auto, any, none, or a tool's name.")
