"""Requests of Anthropic's Messages API as chat requests. Pure.

Fields without a counterpart are left out; content without one is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.chat.apis.base import leave_out
from gateway.chat.apis.messages import turns
from gateway.chat.errors import InvalidValueError
from gateway.chat.request import object_in

SAME_NAME = ("max_tokens", "temperature", "top_p", "top_k")
TRANSLATED = frozenset(
    {
        *("model", "messages", "system", "stream", *SAME_NAME, "stop_sequences"),
        *("tools", "tool_choice", "thinking"),
        *("output_config", "output_format"),
        # Without an effect on other upstreams, which cache by themselves.
        *("cache_control", "context_management", "diagnostics", "metadata"),
    }
)
# Up to how many tokens of thinking an effort asks for, as the other direction has it.
BUDGETS = ((2048, "low"), (8192, "medium"))
CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def translate(body: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return a chat request, without the name of the model.

    Raises UnsupportedRequestError for content without a counterpart, InvalidValueError for what
    is not of the API's shape. Values that an upstream can check are passed on.
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
    config, thinking = object_in(body, "output_config"), object_in(body, "thinking")
    effort, budget = config.get("effort"), thinking.get("budget_tokens")
    if thinking.get("type") == "disabled":
        return {}
    if effort is None and thinking.get("type") == "enabled" and isinstance(budget, int):
        effort = next((name for most, name in BUDGETS if budget <= most), "high")
    return {} if effort is None else {"reasoning_effort": effort}


def _format(body: Mapping[str, Any], model: str) -> dict[str, Any]:
    config = object_in(body, "output_config")
    match config.get("format") or body.get("output_format"):
        case None:
            return {}
        case {"type": "json_schema", "schema": dict(schema)}:
            named = {"name": "output", "schema": schema, "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        case {"type": str(kind)} if kind != "json_schema":
            leave_out(model, (f"output_config.format {kind}",))
            return {}
    raise InvalidValueError("output_config: a json_schema needs its schema.")


def _tools(body: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return the tools and the choice; tools that a server of the API has itself are left out."""
    tools, choice = body.get("tools") or [], object_in(body, "tool_choice")
    if not isinstance(tools, list):
        raise InvalidValueError("tools: must be a list.")
    functions = [function for tool in tools if (function := _function(tool, model))]
    if not functions:
        if choice.get("type") in {"any", "tool"}:
            raise InvalidValueError("tool_choice: there are no tools.")
        return {}
    is_single = choice.get("disable_parallel_tool_use") is True
    return {
        "tools": functions,
        **({"tool_choice": _choice(choice)} if choice else {}),
        **({"parallel_tool_calls": False} if is_single else {}),
    }


def _function(tool: Any, model: str) -> dict[str, Any] | None:
    match tool:
        case {"type": str(kind)} if kind != "custom":
            leave_out(model, (f"tools.{kind}",))
            return None
        case {"name": str(name), "input_schema": dict(schema)}:
            optional = {key: tool.get(key) for key in ("description", "strict")}
            given = {key: value for key, value in optional.items() if value}
            function = {"name": name, "parameters": schema, **given}
            return {"type": "function", "function": function}
    raise InvalidValueError("tools: each must have a name and an input_schema.")


def _choice(choice: Mapping[str, Any]) -> Any:
    match choice:
        case {"type": "tool", "name": str(name)}:
            return {"type": "function", "function": {"name": name}}
        case {"type": "auto" | "any" | "none" as kind}:
            return CHOICES[kind]
    raise InvalidValueError("tool_choice: must be auto, any, none, or a tool's name.")
