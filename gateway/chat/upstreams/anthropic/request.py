"""Chat requests in the terms of Anthropic's Messages API. Pure.

Fields without a counterpart are left out; content without one is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.chat.apis.base import leave_out, messages_of, translating
from gateway.chat.apis.messages.format import TOOL_CHOICES
from gateway.chat.errors import InvalidValueError, UnsupportedRequestError
from gateway.chat.upstreams.anthropic.turns import conversation, with_cache_control
from gateway.configuration.shapes import ADAPTIVE, BUDGET, UNASKED

# The API requires a limit, which OpenAI's clients seldom set. A budget is added to it; a
# model that thinks as much as it finds right needs room for both.
DEFAULT_MAX_TOKENS = 4096
THINKING_MAX_TOKENS = 16_384
SAME_NAME = ("top_p", "top_k", "cache_control")
TRANSLATED = frozenset(
    {
        *("model", "messages", "stream", "stream_options"),
        *("max_tokens", "max_completion_tokens", "temperature", *SAME_NAME, "stop"),
        *("tools", "tool_choice", "parallel_tool_calls", "response_format"),
        "reasoning_effort",
        # Without an effect on an answer.
        *("store", "prompt_cache_key", "prompt_cache_retention"),
    }
)
# OpenAI's efforts: the API's names of them, and tokens for thinking where it takes a budget.
# It requires at least 1,024; as many remain for the text.
EFFORTS = {
    "minimal": ("low", 1024),
    "low": ("low", 2048),
    "medium": ("medium", 8192),
    "high": ("high", 16_384),
    "xhigh": ("xhigh", 32_768),
    "max": ("max", 49_152),
}
MIN_THINKING = 1024


def translate(
    body: Mapping[str, Any], *, model: str, entry: str, thinking: str = ADAPTIVE
) -> dict[str, Any]:
    """Return the body of a call to /v1/messages, for a model that thinks in this way.

    Raises UnsupportedRequestError for content that the API does not have, InvalidValueError for
    what is not of its shape. Values that the API can check are passed on.
    """
    leave_out(entry, (n for n in body if n not in TRANSLATED and body[n] is not None))
    call: dict[str, Any] = {
        "model": model,
        **_lengths(body, thinking),
        **conversation(messages_of(body)),
        **{name: body[name] for name in SAME_NAME if body.get(name) is not None},
        **_sampling(body),
        **_tools(body),
        **_output_config(body, thinking, entry),
    }
    return {**call, "stream": True} if body.get("stream") is True else call


def _lengths(body: Mapping[str, Any], way: str) -> dict[str, Any]:
    """Return how long a completion may be, and how the model thinks for it."""
    names = ("max_completion_tokens", "max_tokens")
    limit = next((body[name] for name in names if body.get(name) is not None), None)
    thinking = _thinking(body, limit, way)
    if limit is None:
        is_free = thinking.get("type") == ADAPTIVE if thinking else way == UNASKED
        budget = thinking.get("budget_tokens", 0)
        limit = THINKING_MAX_TOKENS if is_free else DEFAULT_MAX_TOKENS + budget
    return {"max_tokens": limit, **({"thinking": thinking} if thinking else {})}


def _thinking(body: Mapping[str, Any], limit: Any, way: str) -> dict[str, Any]:
    """Return how the model thinks for the effort that a request asks for."""
    effort = str(body.get("reasoning_effort") or "none")
    # The API refuses to think before a call that it is forced to make.
    is_forced = body.get("tool_choice") not in (None, "auto", "none")
    if effort == "none" or is_forced:
        return {}
    if way != BUDGET:
        return {"type": ADAPTIVE, "display": "summarized"}
    if effort not in EFFORTS:
        known = ", ".join(("none", *EFFORTS))
        raise InvalidValueError(f"reasoning_effort: must be one of {known}.")
    _, budget = EFFORTS[effort]
    if isinstance(limit, int):
        budget = min(budget, limit // 2)
    if budget < MIN_THINKING:
        least = 2 * MIN_THINKING
        raise UnsupportedRequestError(f"reasoning_effort with less than {least} tokens")
    return {"type": "enabled", "budget_tokens": budget}


def _output_config(body: Mapping[str, Any], way: str, entry: str) -> dict[str, Any]:
    """Return the `output_config`: the effort, where no budget stands for it, and the format."""
    effort, _ = EFFORTS.get(str(body.get("reasoning_effort")), ("", 0))
    wanted = {
        "effort": "" if way == BUDGET else effort,
        "format": _format(body.get("response_format") or {}, entry),
    }
    config = {name: value for name, value in wanted.items() if value}
    return {"output_config": config} if config else {}


def _format(wanted: Mapping[str, Any], entry: str) -> dict[str, Any] | None:
    match wanted.get("type"):
        case None | "text":
            return None
        case "json_schema":
            named = wanted["json_schema"]
            schema = named["schema"]
            if description := named.get("description"):
                schema = {"description": description, **schema}
            return {"type": "json_schema", "schema": schema}
        case kind:
            leave_out(entry, (f"response_format {kind}",))
            return None


def _sampling(body: Mapping[str, Any]) -> dict[str, Any]:
    sampling: dict[str, Any] = {}
    temperature, stop = body.get("temperature"), body.get("stop")
    if temperature is not None:
        # OpenAI's scale ends at 2, the API's at 1. Other values are for the API to refuse.
        is_high = isinstance(temperature, int | float) and 1 < temperature <= 2
        sampling["temperature"] = 1 if is_high else temperature
    if stop:
        sampling["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    return sampling


def _tools(body: Mapping[str, Any]) -> dict[str, Any]:
    tools, parallel = body.get("tools"), body.get("parallel_tool_calls")
    if not tools:
        return {}
    choice = _tool_choice(body.get("tool_choice"))
    if parallel is False and choice.get("type") != "none":
        choice = {"type": "auto", **choice, "disable_parallel_tool_use": True}
    with translating("tools"):
        translated = {"tools": [_tool(tool) for tool in tools]}
    return {**translated, "tool_choice": choice} if choice else translated


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    if tool["type"] != "function":
        raise UnsupportedRequestError(f"tools of the type {tool['type']}")
    function = tool["function"]
    # The API requires the type of an input.
    schema = {"type": "object", **(function.get("parameters") or {})}
    given = {n: function[n] for n in ("description", "strict") if function.get(n)}
    translated = {"name": function["name"], "input_schema": schema, **given}
    return with_cache_control(with_cache_control(translated, function), tool)


def _tool_choice(choice: Any) -> dict[str, Any]:
    match choice:
        case None:
            return {}
        case str() if choice in TOOL_CHOICES:
            return {"type": TOOL_CHOICES[choice]}
        case {"function": {"name": name}}:
            return {"type": "tool", "name": name}
    raise InvalidValueError("tool_choice: not one of OpenAI's forms.")
