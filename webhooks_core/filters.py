"""Filters of events: which envelopes an endpoint receives. Pure; checked when they are written.

A filter is a condition on the envelope. A condition is an object, all of whose members hold: `$and`,
`$or` and `$not` are conditions on the same value, the other operators compare it, and each other name
is a member of the value with its condition. Anything but an object is short for `$eq`.

An absent value matches only `$exist: false`, `$neq` and `$not`. Types are never converted: numbers
compare as numbers, texts by code point.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import orjson

LARGEST = 2.0**63  # PostgreSQL would return it as an integer that no JSON of ours holds
MAX_DEPTH = 8
MAX_NODES = 100
MAX_BYTES = 16_384

Condition = Callable[[Any], bool]


class FilterError(ValueError):
    """A filter is not valid; the message names the place."""


ABSENT: Any = object()  # the value of a member that an object does not have


def _is_same(value: Any, operand: Any) -> bool:
    """Compare JSON, at a cost in proportion to the operand: 1 is 1.0, and neither is true."""
    if isinstance(value, bool) or isinstance(operand, bool):
        return value is operand
    if isinstance(value, list) and isinstance(operand, list):
        return len(value) == len(operand) and all(map(_is_same, value, operand))
    if isinstance(value, dict) and isinstance(operand, dict):
        return value.keys() == operand.keys() and all(
            _is_same(value[name], operand[name]) for name in operand
        )
    return bool(value == operand)


def _kind(value: Any) -> str:
    """Return `number`, `string` or "": what can be ordered."""
    if isinstance(value, str):
        return "string"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if is_number else ""


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, list | dict)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, operand: (
        _kind(value) == _kind(operand) and compare(value, operand)
    )


COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": _is_same,
    "$neq": lambda value, operand: not _is_same(value, operand),
    "$gt": _ordered(operator.gt),
    "$gte": _ordered(operator.ge),
    "$lt": _ordered(operator.lt),
    "$lte": _ordered(operator.le),
    "$in": lambda value, operand: any(_is_same(value, each) for each in operand),
    "$exist": lambda value, operand: (value is not ABSENT) is operand,
}
LOGICAL = ("$and", "$or", "$not")


def _fault(name: str, operand: Any) -> str:
    """Return why a comparison has no such operand; "" if it has."""
    if name in {"$gt", "$gte", "$lt", "$lte"} and not _kind(operand):
        return "must be a number or a string"
    if name == "$in" and not (
        isinstance(operand, list) and all(map(_is_scalar, operand))
    ):
        return "must be an array of strings, numbers, booleans or nulls"
    if name == "$exist" and not isinstance(operand, bool):
        return "must be true or false"
    return ""


def compiled(source: Any) -> Condition:
    """Return a filter: whether an envelope matches. Raises FilterError."""
    if not isinstance(source, dict):
        raise FilterError("filter must be an object.")
    _check_size(source)
    if len(orjson.dumps(source)) > MAX_BYTES:
        raise FilterError(f"filter is over {MAX_BYTES} bytes.")
    return _compile(source, "filter")


@lru_cache(maxsize=4096)
def from_json(text: str) -> Condition:
    """Return a stored filter; each is compiled once in a process."""
    return compiled(orjson.loads(text))


def _check_size(source: Any) -> None:
    """Raise FilterError for a filter with too many parts, of too many levels, or with a NUL."""
    left, nodes = [(source, 1)], 0
    while left:
        value, depth = left.pop()
        nodes += 1
        if nodes > MAX_NODES:
            raise FilterError(f"filter has more than {MAX_NODES} parts.")
        texts = value if isinstance(value, dict) else [value]
        if any(isinstance(text, str) and "\0" in text for text in texts):
            raise FilterError("filter must not hold NUL.")
        if isinstance(value, int | float) and abs(value) >= LARGEST:
            raise FilterError("filter holds a number of more than 64 bits.")
        if _is_scalar(value):
            continue
        if depth > MAX_DEPTH:
            raise FilterError(f"filter is nested deeper than {MAX_DEPTH} levels.")
        inner = value.values() if isinstance(value, dict) else value
        left += ((item, depth + 1) for item in inner)


def _compile(source: Any, path: str) -> Condition:
    if not isinstance(source, dict):
        return lambda value: _is_same(value, source)
    parts = [_member(name, operand, path) for name, operand in source.items()]
    return lambda value: all(part(value) for part in parts)


def _member(name: str, operand: Any, path: str) -> Condition:
    path = f"{path}.{name}"
    if name in LOGICAL:
        return _logical(name, operand, path)
    if compare := COMPARISONS.get(name):
        if fault := _fault(name, operand):
            raise FilterError(f"{path} {fault}.")
        return lambda value: compare(value, operand)
    if name.startswith("$"):
        known = ", ".join([*COMPARISONS, *LOGICAL])
        raise FilterError(f"{path} is no operator; known are {known}.")
    part = _compile(operand, path)
    return lambda value: part(
        value.get(name, ABSENT) if isinstance(value, dict) else ABSENT
    )


def _logical(name: str, operand: Any, path: str) -> Condition:
    if name == "$not":
        part = _compile(operand, path)
        return lambda value: not part(value)
    if not isinstance(operand, list) or not operand:
        raise FilterError(f"{path} must be an array of at least one condition.")
    parts = [_compile(each, f"{path}[{n}]") for n, each in enumerate(operand)]
    choose = all if name == "$and" else any
    return lambda value: choose(part(value) for part in parts)
