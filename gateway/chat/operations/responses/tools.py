"""The tools of a Responses request as functions, which every upstream has. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway import json
from gateway.chat.errors import InvalidValueError, UnsupportedRequestError
from gateway.json import mapping, objects

# A custom tool takes a text, which becomes the only parameter of a function.
INPUT = "input"
INPUT_SCHEMA = {
    "type": "object",
    "properties": {INPUT: {"type": "string"}},
    "required": [INPUT],
    "additionalProperties": False,
}
CHOICES = ("auto", "none", "required")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the client declared, whose calls it gets back as such."""

    name: str
    namespace: str = ""
    is_custom: bool = False


@dataclass(frozen=True, slots=True)
class Tools:
    """The functions of a chat request, and the tools that they stand for, by their name."""

    functions: list[dict[str, Any]] = field(default_factory=list)
    by_name: dict[str, Tool] = field(default_factory=dict)

    def tool(self, name: str) -> Tool:
        """Return the tool of a call; a model may call one that does not exist."""
        return self.by_name.get(name) or Tool(name)

    def add(self, function: dict[str, Any], tool: Tool) -> None:
        """Raises InvalidValueError: there is another tool of this name."""
        if function["name"] in self.by_name:
            raise InvalidValueError(f"tools: {function['name']} is given twice."[:500])
        self.functions.append({"type": "function", "function": function})
        self.by_name[function["name"]] = tool


def read(tools: Any, *, skips_hosted: bool = False) -> Tools:
    """Return the tools of a request.

    Raises InvalidValueError; UnsupportedRequestError for hosted tools, unless they are to be
    left out.
    """
    if tools is not None and not isinstance(tools, list):
        raise InvalidValueError("tools: must be a list.")
    known = Tools()
    for tool in tools or ():
        _add(known, tool, "", skips_hosted=skips_hosted)
    return known


def _add(known: Tools, tool: Any, namespace: str, *, skips_hosted: bool) -> None:
    match tool:
        case {"type": "function", "name": str(name)}:
            known.add(_function(tool, namespace), Tool(name, namespace))
        case {"type": "custom", "name": str(name)}:
            known.add(_custom(tool, namespace), Tool(name, namespace, is_custom=True))
        case {"type": "namespace", "name": str(name), "tools": list(inner)}:
            for item in inner:
                _add(known, item, name, skips_hosted=skips_hosted)
        case {"type": str(kind)} if kind not in {"function", "custom", "namespace"}:
            if not skips_hosted:
                raise UnsupportedRequestError(f"tools of the type {kind}")
        case _:
            raise InvalidValueError("tools: each must be a function with a name.")


def flat_name(name: str, namespace: Any) -> str:
    """Return the name of a function that stands for a tool of a namespace, if it has one."""
    is_given = isinstance(namespace, str) and namespace
    return f"{namespace}__{name}" if is_given else name


def _function(tool: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    same = ("description", "parameters", "strict")
    return {
        "name": flat_name(tool["name"], namespace),
        **{key: tool[key] for key in same if tool.get(key) is not None},
    }


def _custom(tool: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return a function for a tool that takes a text; its description says the grammar."""
    texts = [tool.get("description"), _grammar(tool.get("format"))]
    return {
        "name": flat_name(tool["name"], namespace),
        "description": "\n\n".join(text for text in texts if isinstance(text, str)),
        "parameters": INPUT_SCHEMA,
    }


def _grammar(text_format: Any) -> str | None:
    match text_format:
        case {"type": "grammar", "definition": str(definition)}:
            syntax = text_format.get("syntax") or "lark"
            return f"`{INPUT}` must follow this grammar ({syntax}):\n{definition}"
        case None | {"type": "text"}:
            return None
    raise InvalidValueError("tools: a format must be text, or a grammar.")


def input_of(arguments: str) -> str:
    """Return the text that a model gave to a custom tool.

    A model may write it without the object that it should stand in.
    """
    try:
        value = json.loads(arguments.encode())
    except ValueError:
        return arguments
    text = mapping(value).get(INPUT)
    return text if isinstance(text, str) else arguments


def arguments_of(text: str) -> str:
    """Return the arguments of the function that stands for a custom tool."""
    return json.dumps({INPUT: text}).decode()


def choice(value: Any, tools: Tools) -> Any:
    """Return the `tool_choice` of a chat request; None for none.

    Raises InvalidValueError, UnsupportedRequestError.
    """
    match value:
        case None:
            return None
        case str() if value in CHOICES:
            return value
        case {"type": "function" | "custom", "name": str(name)}:
            flat = flat_name(name, value.get("namespace"))
            return {"type": "function", "function": {"name": flat}}
        case {"type": "allowed_tools", "mode": "auto" | "required" as mode}:
            allowed = {
                flat_name(item["name"], item.get("namespace"))
                for item in objects(value.get("tools"))
                if isinstance(item.get("name"), str)
            }
            kept = [f for f in tools.functions if f["function"]["name"] in allowed]
            tools.functions[:] = kept
            return mode
        case {"type": str(kind)} if kind not in {"function", "custom", "allowed_tools"}:
            raise UnsupportedRequestError(f"tool_choice of the type {kind}")
    raise InvalidValueError("tool_choice: not one of OpenAI's forms.")
