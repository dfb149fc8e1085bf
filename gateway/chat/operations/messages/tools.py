"""The tools of Anthropic's Messages API as functions: those that the model can call now. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.chat.errors import InvalidValueError, UnsupportedRequestError
from gateway.chat.upstreams.turns import refuse_others
from gateway.json import objects

FIELDS = frozenset(
    {
        *("type", "name", "description", "input_schema", "strict", "cache_control"),
        *("eager_input_streaming", "defer_loading"),
    }
)
CHOICES = {"auto": "auto", "any": "required", "none": "none"}
# Blocks of turns of the system that change the tools.
ADDITION, REMOVAL = "tool_addition", "tool_removal"
CHANGES = (ADDITION, REMOVAL)
REFERENCE = "tool_reference"


def translate(body: Mapping[str, Any], choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tools and the choice of a chat request.

    Raises InvalidValueError, UnsupportedRequestError.
    """
    tools = body.get("tools") or []
    if not isinstance(tools, list):
        raise InvalidValueError("tools: must be a list.")
    functions = [_function(tool) for tool in _callable(tools, body.get("messages"))]
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


def _callable(tools: list[Any], turns: Any) -> list[Any]:
    """Return the tools without those that are deferred, until a turn refers to them.

    Turns can also define tools, and remove them.
    """
    known = dict(enumerate(tools))
    places = {_name(tool): place for place, tool in known.items()}
    hidden = {
        place
        for place, tool in known.items()
        if isinstance(tool, dict) and tool.get("defer_loading") is True
    }
    for kind, tool in _changes(turns):
        place = places.get(_name(tool), -1)
        if kind == REMOVAL:
            hidden.add(place)
        elif tool.get("type") == "tool_definition":
            hidden.add(place)
            definition = tool.get("definition")
            places[_name(definition)] = len(known)
            known[len(known)] = definition
        else:
            hidden.discard(place)
    return [tool for place, tool in known.items() if place not in hidden]


def _name(tool: Any) -> str:
    """Return the name of a tool, or of the tool that a reference or a definition is for."""
    if not isinstance(tool, dict):
        return ""
    if tool.get("type") == "tool_definition":
        return _name(tool.get("definition"))
    names = (tool.get("tool_name"), tool.get("name"))
    return next((name for name in names if isinstance(name, str)), "")


def _changes(turns: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what the turns say about tools, in their order."""
    for block in _blocks(turns):
        kind = block.get("type")
        if kind in CHANGES:
            tool = block.get("tool")
            if not isinstance(tool, dict):
                raise InvalidValueError(f"messages: {kind} needs its tool.")
            yield kind, tool
        elif kind == "tool_result":
            for part in objects(block.get("content")):
                if part.get("type") == REFERENCE:
                    yield ADDITION, part


def _blocks(turns: Any) -> Iterator[Mapping[str, Any]]:
    for turn in objects(turns):
        yield from objects(turn.get("content"))


def _function(tool: Any) -> dict[str, Any]:
    match tool:
        case {"type": str(kind)} if kind != "custom":
            raise UnsupportedRequestError(f"tools of the type {kind}")
        case {"name": str(name), "input_schema": dict(schema)}:
            others = {n: v for n, v in tool.items() if v is not False}
            refuse_others(others, FIELDS, "tools")
            optional = {key: tool.get(key) for key in ("description", "strict")}
            function = {
                "name": name,
                "parameters": schema,
                **{key: value for key, value in optional.items() if value},
            }
            return {"type": "function", "function": function}
    raise InvalidValueError("tools: each must have a name and an input_schema.")


def _choice(choice: Mapping[str, Any]) -> Any:
    match choice:
        case {"type": "tool", "name": str(name)}:
            return {"type": "function", "function": {"name": name}}
        case {"type": "auto" | "any" | "none" as kind}:
            return CHOICES[kind]
    raise InvalidValueError("tool_choice: must be auto, any, none, or a tool's name.")
