"""A Responses request as a chat request, which every upstream understands. Pure.

Nothing is stored between requests, so what needs a memory is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.chat.errors import InvalidValueError, UnsupportedRequestError
from gateway.chat.operations.carried import Carrier
from gateway.chat.operations.responses import items, tools
from gateway.chat.operations.responses.tools import Tools
from gateway.chat.request import object_in
from gateway.chat.upstreams.tolerance import named, without
from gateway.configuration.shapes import ModelEntry

# What a server without a memory, or without tools of its own, does not have; and the values
# that ask for nothing.
STATEFUL: Mapping[str, tuple[Any, ...]] = {
    "previous_response_id": (),
    "conversation": (),
    "prompt": (),
    "background": (False,),
    "store": (False,),
    "truncation": ("disabled",),
    "max_tool_calls": (),
    "context_management": ([],),
    "messages": (),
}
# Fields with another name or form in a chat request, and those without an effect.
TRANSLATED = frozenset(
    {
        *("model", "input", "instructions", "tools", "tool_choice"),
        *("parallel_tool_calls", "reasoning", "text", "max_output_tokens"),
        *("include", "top_logprobs", "stream_options", "client_metadata"),
        *STATEFUL,
    }
)
# A hint for the cache, which has no effect on an answer: only OpenAI's shape has it.
HINTS = frozenset({"prompt_cache_key", "prompt_cache_retention"})
LOGPROBS = "message.output_text.logprobs"
ENCRYPTED = "reasoning.encrypted_content"
FORMATS = ("name", "description", "schema", "strict")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """The body of a chat request, and what its answer needs of the client's request."""

    body: dict[str, Any]
    tools: Tools
    carrier: Carrier


def translate(body: Mapping[str, Any], entry: ModelEntry) -> ChatRequest:
    """Return the chat request. Raises InvalidValueError, UnsupportedRequestError."""
    body = without(body, named(entry))
    _refuse_stateful(body, entry)
    known = tools.read(body.get("tools"), skips_hosted=entry.drop_params is True)
    choice = tools.choice(body.get("tool_choice"), known)
    include = body.get("include") or []
    if not isinstance(include, list):
        raise InvalidValueError("include: must be a list.")
    carrier = Carrier(entry.name, is_wanted=ENCRYPTED in include)
    left_out = TRANSLATED if entry.upstream == "openai" else TRANSLATED | HINTS
    chat = {
        **{name: body[name] for name in body if name not in left_out},
        "messages": items.messages(body, carrier),
        **_with_tools(body, known, choice),
        **_options(body, wants_logprobs=LOGPROBS in include),
    }
    return ChatRequest(chat, known, carrier)


def _refuse_stateful(body: Mapping[str, Any], entry: ModelEntry) -> None:
    """Raise UnsupportedRequestError for what needs a memory.

    With `drop_params: true` only `store` is left out: the client can go on without it.
    """
    refused = [
        name if isinstance(body[name], str | list | dict) else f"{name}: {body[name]}"
        for name, harmless in STATEFUL.items()
        if body.get(name) is not None
        and body[name] not in harmless
        and not (name == "store" and entry.drop_params is True)
    ]
    if refused:
        raise UnsupportedRequestError(", ".join(refused).replace("True", "true"))


def _with_tools(body: Mapping[str, Any], known: Tools, choice: Any) -> dict[str, Any]:
    if not body.get("tools") and choice not in (None, "auto", "none"):
        raise InvalidValueError("tool_choice: there are no tools.")
    if not known.functions:
        return {}
    others = {
        "tool_choice": choice,
        "parallel_tool_calls": body.get("parallel_tool_calls"),
    }
    given = {name: value for name, value in others.items() if value is not None}
    return {"tools": known.functions, **given}


def _options(body: Mapping[str, Any], *, wants_logprobs: bool) -> dict[str, Any]:
    reasoning, text = object_in(body, "reasoning"), object_in(body, "text")
    top_logprobs = body.get("top_logprobs") or None
    options = {
        "max_completion_tokens": body.get("max_output_tokens"),
        "reasoning_effort": reasoning.get("effort"),
        "verbosity": text.get("verbosity"),
        "response_format": _format(text.get("format")),
        "top_logprobs": top_logprobs,
        "logprobs": True if wants_logprobs or top_logprobs else None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _format(value: Any) -> dict[str, Any] | None:
    match value:
        case None | {"type": "text"}:
            return None
        case {"type": "json_schema", "schema": dict()}:
            schema = {n: value[n] for n in FORMATS if value.get(n) is not None}
            return {"type": "json_schema", "json_schema": schema}
        case {"type": str(kind)} if kind != "json_schema":
            return {"type": kind}
    raise InvalidValueError(
        "text: the format must have a type, a json_schema a schema."
    )
