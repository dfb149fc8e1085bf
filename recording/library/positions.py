"""Line and column of a value in a JSON text, for error messages."""

from __future__ import annotations

import re

import orjson

Path = tuple[str | int, ...]

# For valid JSON, where any bracket closes the last open one. All patterns are possessive and
# run in the regular expression engine: a loop over 600,000 segments would take seconds.
STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# Containers within containers, more than a recording has. Deeper ones need a loop.
LEVELS = 5
CONTAINER = STRING
for _ in range(LEVELS):
    CONTAINER = (
        rf'[\[{{][^\[\]{{}}"]*+(?:(?>{STRING}|{CONTAINER})[^\[\]{{}}"]*+)*+[\]}}]'
    )
VALUE = rf"(?>{STRING}|{CONTAINER}|[^\s,:\[\]{{}}\"]++)"

SPACE = re.compile(r"\s*+")
WHOLE_VALUE = re.compile(rf"{VALUE}\s*+")
REST_OF_ARRAY = re.compile(rf"(?:,\s*+{VALUE}\s*+)*+\]\s*+")
NAME = re.compile(rf"[{{,]\s*+({STRING})\s*+:\s*+")
BRACKET = re.compile(rf"{STRING}|[\[\]{{}}]")


def locate(text: str, path: Path) -> tuple[int, int]:
    """Return line and column, from 1, of the value at `path`, which must exist, in valid JSON.

    Of members with the same name the last counts, as for the parser.
    """
    position, _ = _walk(text, _skip(SPACE, text, 0), path)
    return line_and_column(text, position)


def _walk(text: str, at: int, path: Path) -> tuple[int, int]:
    """Return where the value at a path begins, and where the token after the value at `at` does.

    One pass: everything outside the path is skipped once.
    """
    if not path:
        return at, _end(text, at)
    first, rest = path[0], path[1:]
    if isinstance(first, int):
        position, end = _walk(text, _element(text, at, first), rest)
        return position, _array_end(text, end)
    position = at
    while member := NAME.match(text, at):
        if orjson.loads(member[1]) == first:
            position, at = _walk(text, member.end(), rest)
        else:
            at = _end(text, member.end())
    return position, _skip(SPACE, text, at + 1)


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a match ends; `at` if nothing matches."""
    match = pattern.match(text, at)
    return match.end() if match else at


def _end(text: str, at: int) -> int:
    """Return where the token after a value begins."""
    if value := WHOLE_VALUE.match(text, at):
        return value.end()
    depth = 0
    for token in BRACKET.finditer(text, at):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if not depth:
            return _skip(SPACE, text, token.end())
    return len(text)


def _element(text: str, at: int, index: int) -> int:
    """Return where an element of the array at `at` begins."""
    before = re.compile(rf"\[(?:\s*+{VALUE}\s*+,){{{index}}}+\s*+")
    if match := before.match(text, at):
        return match.end()
    for _ in range(index):
        at = _end(text, _skip(SPACE, text, at + 1))
    return _skip(SPACE, text, at + 1)


def _array_end(text: str, at: int) -> int:
    """Return where the token after an array begins, of which an element ended at `at`."""
    if rest := REST_OF_ARRAY.match(text, at):
        return rest.end()
    while text[at] == ",":
        at = _end(text, _skip(SPACE, text, at + 1))
    return _skip(SPACE, text, at + 1)


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """Return line and column, from 1, of a character."""
    start = text.rfind("\n", 0, position)
    return text.count("\n", 0, position) + 1, position - start


def name(path: Path) -> str:
    """Return a path as people write it, such as `summaries[0].label`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")
