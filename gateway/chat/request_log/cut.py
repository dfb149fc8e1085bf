"""JSON cut to a number of characters; of a list the last items are kept. Pure."""

from __future__ import annotations

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
    """How many characters may still be kept, and whether something was not."""

    left: int
    is_cut: bool = False

    def cut(self, value: Any, depth: int = 0) -> Any:
        """Return what fits of JSON. Costs no more than the room, whatever the size of the value."""
        match value:
            case str():
                return self._text(value, BINARY if value.startswith("data:") else None)
            case dict() | list() if depth == MAX_DEPTH:
                self.is_cut = True
                return None
            case dict():
                return self._members(value, depth + 1)
            case list():
                return self._last_items(value, depth + 1)
        self.left -= SMALL
        return value

    def _text(self, text: str, most: int | None = None) -> str:
        kept = text[: max(0, self.left if most is None else min(most, self.left))]
        self.left -= len(kept)
        if len(kept) == len(text):
            return text
        self.is_cut = True
        return f"{kept}…"

    def _members(self, value: Mapping[str, Any], depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for name, item in value.items():
            if self.left <= 0:
                self.is_cut = True
                break
            self.left -= len(name) + SMALL
            is_binary = name in BINARY_NAMES and isinstance(item, str)
            kept[name[:100]] = (
                HIDDEN
                if name.lower() in SECRET_NAMES
                else self._text(item, BINARY)
                if is_binary
                else self.cut(item, depth)
            )
        return kept

    def _last_items(self, value: list[Any], depth: int) -> list[Any]:
        kept = []
        for item in reversed(value):
            if self.left <= 0:
                self.is_cut = True
                break
            self.left -= SMALL
            kept.append(self.cut(item, depth))
        return kept[::-1]
