"""The tools of a Responses request as functions, which every upstream has. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway import json
from gateway.chat.apis.base import leave_out, translating
from gateway.json import mapping

# A custom tool takes a text, which becomes the only parameter of a function.
INPUT = "input"
INPUT_SCHEMA = {
    "type": "object",
    "properties": {INPUT: {"type": "string"}},
    "required": [INPUT],
    "additionalProperties": False,
}
SAME = ("description", "parameters", "strict")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the client declared, whose calls it gets back as such."""

    name: str
    namespace: str = ""
    is_custom: bool = False


@dataclass(slots=True)
class Tools:
    """The functions of a chat request, and the tools that they stand for, by their name."""

    model: str
    functions: list[dict[str, Any]] = field(default_factory=list)
    by_name: dict[str, Tool] = field(default_factory=dict)

    def tool(self, name: str) -> Tool:
        """Return the tool of a call; a model may call one that does not exist."""
        return self.by_name.get(name) or Tool(name)

    def add(self, tool: Mapping[str, Any], namespace: str = "") -> None:
        """Add a tool; one that a server of the API has itself is left out."""
        kind = tool["type"]
        if kind == "namespace":
            for item in tool["tools"]:
                self.add(item, tool["name"])
        elif kind not in ("function", "custom"):
            leave_out(self.model, (f"tools.{kind}",))
        else:
            name = flat_name(tool["name"], namespace)
            known = Tool(tool["name"], namespace, is_custom=kind == "custom")
            given = _custom(tool) if known.is_custom else tool
            function = {key: given[key] for key in SAME if given.get(key) is not None}
            function = {"name": name, **function}
            self.functions.append({"type": "function", "function": function})
            self.by_name[name] = known


def read(tools: Any, model: str = "") -> Tools:
    """Return the tools of a request."""
    known = Tools(model)
    with translating("tools"):
        for tool in tools or ():
            known.add(tool)
    return known


def flat_name(name: str, namespace: Any) -> str:
    """Return the name of a function that stands for a tool of a namespace, if it has one."""
    is_given = isinstance(namespace, str) and namespace
    return f"{namespace}__{name}" if is_given else name


def _custom(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function for a tool that takes a text; its description says the grammar."""
    texts = [tool.get("description"), _grammar(tool.get("format"))]
    return {"description": "\n\n".join(filter(None, texts)), "parameters": INPUT_SCHEMA}


def _grammar(text_format: Any) -> str | None:
    match text_format:
        case {"type": "grammar", "definition": str(definition)}:
            syntax = text_format.get("syntax") or "lark"
            return f"`{INPUT}` must follow this grammar ({syntax}):\n{definition}"
    return None


def input_of(arguments: str) -> str:
    """Return the text that a model gave to a custom tool.

    A model may write it without the object that it should stand in.
    """
    try:
        value = json.loads(arguments.encode("utf-8", "surrogatepass"))
    except ValueError:
        return arguments
    text = mapping(value).get(INPUT)
    return text if isinstance(text, str) else arguments


def arguments_of(text: str) -> str:
    """Return the arguments of the function that stands for a custom tool."""
    return json.dumps({INPUT: text}).decode()


def choice(value: Any, tools: Tools) -> Any:
    """Return the `tool_choice` of a chat request; None for none."""
    match value:
        case None | "auto" | "none" | "required":
            return value
        case {"type": "function" | "custom", "name": name}:
            flat = flat_name(name, value.get("namespace"))
            return {"type": "function", "function": {"name": flat}}
    leave_out(tools.model, (f"tool_choice.{value['type']}",))
    return None
