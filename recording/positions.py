"""Where a value stands in a JSON text: line and column, for error messages."""

from __future__ import annotations

import re

import orjson

Path = tuple[str | int, ...]

# Of valid JSON, so that kinds of brackets need not be told apart. All of it is possessive and
# runs in the regular expression engine: a loop over 600,000 segments would take seconds.
STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# Containers within containers, more than a recording has. Deeper ones are walked through.
LEVELS = 5
CONTAINER = STRING
for _ in range(LEVELS):
    CONTAINER = (
        rf'[\[{{][^\[\]{{}}"]*+(?:(?>{STRING}|{CONTAINER})[^\[\]{{}}"]*+)*+[\]}}]'
    )
VALUE = rf"(?>{STRING}|{CONTAINER}|[^\s,:\[\]{{}}\"]++)"

SPACE = re.compile(r"\s*+")
WHOLE = re.compile(rf"{VALUE}\s*+")
REST = re.compile(rf"(?:,\s*+{VALUE}\s*+)*+\]\s*+")
NAME = re.compile(rf"[{{,]\s*+({STRING})\s*+:\s*+")
BRACKET = re.compile(rf"{STRING}|[\[\]{{}}]")


def locate(text: str, path: Path) -> tuple[int, int]:
    """Return line and column, from 1, of the value at `path`, which must exist, in valid JSON.

    Of members with one name the last counts, as for the parser.
    """
    found, _ = _walk(text, _skip(SPACE, text, 0), path)
    return line_and_column(text, found)


def _walk(text: str, at: int, path: Path) -> tuple[int, int]:
    """Return where the value at a path begins, and where the value at `at` has ended.

    One pass: what stands before, behind and beside the path is skipped once.
    """
    if not path:
        return at, _end(text, at)
    first, rest = path[0], path[1:]
    if isinstance(first, int):
        found, end = _walk(text, _element(text, at, first), rest)
        return found, _array_end(text, end)
    found = at
    while member := NAME.match(text, at):
        if orjson.loads(member[1]) == first:
            found, at = _walk(text, member.end(), rest)
        else:
            at = _end(text, member.end())
    return found, _skip(SPACE, text, at + 1)


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a match ends; `at` when nothing matches."""
    found = pattern.match(text, at)
    return found.end() if found else at


def _end(text: str, at: int) -> int:
    """Return where the token after a value begins."""
    if whole := WHOLE.match(text, at):
        return whole.end()
    depth = 0
    for token in BRACKET.finditer(text, at):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if not depth:
            return _skip(SPACE, text, token.end())
    return len(text)


def _element(text: str, at: int, index: int) -> int:
    """Return where an element of the array at `at` begins."""
    many = re.compile(rf"\[(?:\s*+{VALUE}\s*+,){{{index}}}+\s*+")
    if before := many.match(text, at):
        return before.end()
    for _ in range(index):
        at = _end(text, _skip(SPACE, text, at + 1))
    return _skip(SPACE, text, at + 1)


def _array_end(text: str, at: int) -> int:
    """Return where the token after an array begins, of which an element ended at `at`."""
    if rest := REST.match(text, at):
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
