"""The tools that a request offers, in the shape of every API. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.json import member, objects

TOOLS = ("tools", "functions")
MAX_NAME = 128


def tool_names(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the tools that a request offers.

    A tool that the upstream has itself is named by its type.
    """
    for key in TOOLS:
        for tool in objects(body.get(key)):
            inner = member(tool, "function", "name")
            name = inner or tool.get("name") or tool.get("type")
            if isinstance(name, str):
                yield name[:MAX_NAME]
