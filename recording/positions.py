"""Where a value stands in a JSON text: line and column, for error messages."""

from __future__ import annotations

import re
from dataclasses import dataclass

import orjson

Path = tuple[str | int, ...]

# A string, a bracket, or a number or literal; what separates them is skipped.
TOKEN = re.compile(r'[\s,:]*("[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]|[^\s,:{}\[\]"]+)')


@dataclass(slots=True)
class _Level:
    """An open object (`key` is the member's name) or array (`key` is the index)."""

    key: str | int
    awaits_name: bool = False

    def next(self) -> None:
        """A member ended."""
        if isinstance(self.key, int):
            self.key += 1
        else:
            self.awaits_name = True


def locate(text: str, path: Path) -> tuple[int, int]:
    """Return line and column, from 1, of the value at `path` in valid JSON.

    Of members with one name the last counts, as for the parser. One pass, no recursion. A
    path that does not exist is at the start.
    """
    levels: list[_Level] = []
    found = 0
    for match in TOKEN.finditer(text):
        part = match[1]
        if part in "}]":
            levels.pop()
        elif levels and levels[-1].awaits_name:
            levels[-1] = _Level(key=str(orjson.loads(part)))
            continue
        elif _is_at(levels, path):
            found = match.start(1)
        if part == "{":
            levels.append(_Level(key="", awaits_name=True))
        elif part == "[":
            levels.append(_Level(key=0))
        elif levels:
            levels[-1].next()
    return line_and_column(text, found)


def _is_at(levels: list[_Level], path: Path) -> bool:
    return len(levels) == len(path) and all(
        level.key == key for level, key in zip(levels, path, strict=True)
    )


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """Return line and column, from 1, of a character."""
    start = text.rfind("\n", 0, position)
    return text.count("\n", 0, position) + 1, position - start


def name(path: Path) -> str:
    """Return a path as people write it, such as `summaries[0].label`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")
