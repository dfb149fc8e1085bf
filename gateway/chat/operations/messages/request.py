"""Requests of Anthropic's Messages API as chat requests. No field is dropped. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from gateway.chat.errors import InvalidValueError, UnsupportedRequestError
from gateway.chat.operations.messages import tools, turns
from gateway.chat.operations.messages.call_ids import CallIds
from gateway.chat.request import object_in
from gateway.chat.upstreams.messages import refuse_others_of, service_tier
from gateway.chat.upstreams.turns import is_empty

MAX_MARKED = 4
MAX_USER = 64  # OpenAI's limit
SAME_NAME = ("max_tokens", "temperature", "top_p", "top_k")
TRANSLATED = frozenset(
    {
        *("model", "messages", "system", "stream", *SAME_NAME, "stop_sequences"),
        *("metadata", "service_tier", "tools", "tool_choice", "thinking"),
        *("output_config", "output_format", "context_management"),
        # Without an effect on other upstreams, which cache by themselves.
        *("cache_control", "diagnostics"),
    }
)
# Values that ask for nothing, and can be left out.
WITHOUT_EFFECT: Mapping[str, tuple[Any, ...]] = {"speed": ("standard",)}
SERVICE_TIERS = {"auto": "auto", "standard_only": "default"}
# Up to how many tokens of thinking an effort asks for, as the other direction has it.
BUDGETS = ((2048, "low"), (8192, "medium"))
EFFORTS = ("low", "medium", "high", "xhigh", "max")


def translate(body: Mapping[str, Any], ids: CallIds) -> dict[str, Any]:
    """Return a chat request, without the name of the model; `ids` gets its calls.

    Raises UnsupportedRequestError for what has no counterpart, InvalidValueError for what is
    not of the API's shape. Values that an upstream can check are passed on.
    """
    _refuse_untranslatable(body)
    stop = body.get("stop_sequences")
    translated = {
        "messages": turns.messages(body, ids),
        **{name: body[name] for name in SAME_NAME if body.get(name) is not None},
        **({} if is_empty(stop) else {"stop": stop}),
        **_user(object_in(body, "metadata")),
        **service_tier(body.get("service_tier"), SERVICE_TIERS),
        **tools.translate(body, object_in(body, "tool_choice")),
        **_effort(body),
        **_format(body),
    }
    return {**translated, "stream": True} if body.get("stream") else translated


def _refuse_untranslatable(body: Mapping[str, Any]) -> None:
    others = [
        name
        for name, value in body.items()
        if name not in TRANSLATED
        and not is_empty(value)
        and value not in WITHOUT_EFFECT.get(name, ())
    ]
    if others:
        raise UnsupportedRequestError(", ".join(others), fields=others)
    edits = object_in(body, "context_management").get("edits")
    for edit in edits if isinstance(edits, list) else ():
        # Thinking of earlier turns is not sent anyway.
        kind = str(edit.get("type")) if isinstance(edit, dict) else ""
        if not kind.startswith("clear_thinking_"):
            text = f"context_management: {kind}"
            raise UnsupportedRequestError(text, fields={"context_management"})
    if (number := turns.marked(body)) > MAX_MARKED:
        raise InvalidValueError(
            f"A maximum of {MAX_MARKED} blocks with cache_control may be provided. "
            f"Found {number}."
        )


def _user(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the user; a name that is too long for others becomes its digest."""
    refuse_others_of(metadata, {"user_id"}, "metadata")
    user = metadata.get("user_id")
    if isinstance(user, str) and len(user) > MAX_USER:
        user = sha256(user.encode("utf-8", "surrogatepass")).hexdigest()
    return {} if user is None else {"user": user}


def _effort(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the effort that a request names, or that its budget to think with stands for.

    Adaptive thinking leaves it to the model.
    """
    config, thinking = object_in(body, "output_config"), object_in(body, "thinking")
    refuse_others_of(config, {"effort", "format"}, "output_config")
    effort, budget = config.get("effort"), thinking.get("budget_tokens")
    if effort is not None and effort not in EFFORTS:
        known = ", ".join(EFFORTS)
        raise InvalidValueError(f"output_config: effort must be one of {known}.")
    if thinking.get("type") == "disabled":
        return {}
    if effort is None and thinking.get("type") == "enabled" and isinstance(budget, int):
        effort = next((name for most, name in BUDGETS if budget <= most), "high")
    return {} if effort is None else {"reasoning_effort": effort}


def _format(body: Mapping[str, Any]) -> dict[str, Any]:
    config = object_in(body, "output_config")
    match config.get("format") or body.get("output_format"):
        case None:
            return {}
        case {"type": "json_schema", "schema": dict(schema)}:
            named = {"name": "output", "schema": schema, "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        case {"type": str(kind)} if kind != "json_schema":
            text = f"output_config: format {kind}"
            raise UnsupportedRequestError(text, fields={"output_config"})
    raise InvalidValueError("output_config: a json_schema needs its schema.")
