"""JSON cut to a number of characters: texts get a mark where they were cut. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# What is deeper is left out.
MAX_DEPTH = 50
# About what a name, a number or a bracket takes.
SMALL = 8
# Characters of an image or a file: enough to recognise its type.
BINARY = 64
BINARY_NAMES = frozenset({"data", "file_data", "b64_json"})
# Members that hold credentials of other services, such as those of MCP servers, and of the data
# sources that Azure's models search.
SECRET_NAMES = frozenset(
    {
        *("authorization", "authorization_token", "api_key", "x-api-key", "headers"),
        *("authentication", "api-key", "access_token", "connection_string"),
    }
)
HIDDEN = "[hidden]"


@dataclass(slots=True)
class Room:
    """How many characters may still be kept."""

    left: int
    is_cut: bool = False

    def take(self, text: str, most: int | None = None) -> str:
        """Return a text, or its beginning and a mark that says how much is left out."""
        left = self.left if most is None else min(most, self.left)
        omitted = max(0, len(text) - left)
        self.left -= min(len(text), left)
        if not omitted:
            return text
        self.is_cut = True
        return f"{text[:left]}… [{omitted} characters cut]"

    def spend(self, count: int) -> None:
        self.left = max(0, self.left - count)


def shortened(value: Any, room: Room, depth: int = 0) -> Any:
    """Return JSON without what is more than the room. Of a list, the last items are kept.

    Costs no more than the room, whatever the size of the value.
    """
    match value:
        case str():
            is_binary = value.startswith("data:")
            return room.take(value, BINARY if is_binary else None)
        case dict() | list() if depth == MAX_DEPTH:
            room.is_cut = True
            return "… [nested too deeply]"
        case dict():
            return _members(value, room, depth + 1)
        case list():
            return _items(value, room, depth + 1)
    room.spend(SMALL)
    return value


def _members(value: Mapping[str, Any], room: Room, depth: int) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, item in value.items():
        if not room.left:
            room.is_cut = True
            kept["…"] = f"[{len(value) - len(kept)} members cut]"
            break
        short_name = name[: room.left]
        room.is_cut = room.is_cut or short_name != name
        room.spend(len(short_name) + SMALL)
        if name.lower() in SECRET_NAMES:
            kept[short_name] = HIDDEN
        elif name in BINARY_NAMES and isinstance(item, str):
            kept[short_name] = room.take(item, BINARY)
        else:
            kept[short_name] = shortened(item, room, depth)
    return kept


def _items(value: list[Any], room: Room, depth: int) -> list[Any]:
    kept: deque[Any] = deque()
    for item in reversed(value):
        if not room.left:
            room.is_cut = True
            kept.appendleft(f"… [{len(value) - len(kept)} earlier items cut]")
            break
        room.spend(SMALL)
        kept.appendleft(shortened(item, room, depth))
    return list(kept)
