"""Filters of events: which envelopes an endpoint receives. Pure; checked when they are written.

A filter is a condition on the envelope. A condition on a value is

- a text, number, boolean or null: the value equals it, or is an array with such an item;
- an array: the value is an array that has each of these items;
- an object, all of whose members hold: `$and`, `$or` and `$not` are conditions on the same value,
  the other operators compare it, and each other name is a member of the value with its condition.

An absent value matches only `$exist: false`, `$neq`, `$nin` and `$not`. Types are never converted:
numbers compare as numbers, texts by code point.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import orjson

MAX_DEPTH = 8
MAX_NODES = 100
MAX_BYTES = 16_384
# Each may read a whole text of the event.
MAX_CONTAINS = 10
MAX_REASONS = 20
MAX_SHOWN = 200


class FilterError(ValueError):
    """A filter is not valid; the message names the place."""


class _Absent:
    """The value of a member that an object does not have."""


ABSENT: Any = _Absent()
Arrays = dict[int, frozenset[Any]]  # the items of arrays of one event, by `id`


@dataclass(frozen=True, slots=True)
class Reason:
    """A part that failed: what was expected at a path, and what was there (ABSENT for nothing)."""

    path: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        absent = self.found is ABSENT
        found = "absent" if absent else _short(self.found)
        return (
            f"{self.path or 'the event'} is {found}, expected {_short(self.expected)}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the reason without `found` if nothing was there."""
        found = {} if self.found is ABSENT else {"found": self.found}
        return {"path": self.path, "expected": self.expected, **found}


def _short(value: Any) -> str:
    """Return JSON for a sentence."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


class Condition(ABC):
    """A part of a compiled filter."""

    @abstractmethod
    def matches(self, value: Any, arrays: Arrays) -> bool:
        """Return True if a value fulfils the condition."""

    @abstractmethod
    def reasons(self, value: Any, path: str, arrays: Arrays) -> Iterator[Reason]:
        """Yield what failed of a condition that does not match."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A compiled filter."""

    condition: Condition

    def matches(self, envelope: Any, arrays: Arrays | None = None) -> bool:
        """Return True if an envelope matches; `arrays` is kept for further filters of it."""
        return self.condition.matches(envelope, {} if arrays is None else arrays)

    def why(self, envelope: Any) -> list[Reason]:
        """Return the parts that fail; none if it matches."""
        if self.matches(envelope):
            return []
        found = self.condition.reasons(envelope, "", {})
        return list(islice(found, MAX_REASONS))


@dataclass(frozen=True, slots=True)
class _All(Condition):
    parts: Sequence[Condition]

    def matches(self, value: Any, arrays: Arrays) -> bool:
        return all(part.matches(value, arrays) for part in self.parts)

    def reasons(self, value: Any, path: str, arrays: Arrays) -> Iterator[Reason]:
        for part in self.parts:
            if not part.matches(value, arrays):
                yield from part.reasons(value, path, arrays)


@dataclass(frozen=True, slots=True)
class _Any(Condition):
    parts: Sequence[Condition]

    def matches(self, value: Any, arrays: Arrays) -> bool:
        return any(part.matches(value, arrays) for part in self.parts)

    def reasons(self, value: Any, path: str, arrays: Arrays) -> Iterator[Reason]:
        for part in self.parts:
            yield from part.reasons(value, path, arrays)


@dataclass(frozen=True, slots=True)
class _Not(Condition):
    part: Condition
    expected: Any

    def matches(self, value: Any, arrays: Arrays) -> bool:
        return not self.part.matches(value, arrays)

    def reasons(self, value: Any, path: str, arrays: Arrays) -> Iterator[Reason]:
        yield Reason(path, {"$not": self.expected}, value)


@dataclass(frozen=True, slots=True)
class _Member(Condition):
    name: str
    part: Condition

    def matches(self, value: Any, arrays: Arrays) -> bool:
        inner = value.get(self.name, ABSENT) if isinstance(value, dict) else ABSENT
        return self.part.matches(inner, arrays)

    def reasons(self, value: Any, path: str, arrays: Arrays) -> Iterator[Reason]:
        inner = value.get(self.name, ABSENT) if isinstance(value, dict) else ABSENT
        inner_path = f"{path}.{self.name}" if path else self.name
        yield from self.part.reasons(inner, inner_path, arrays)


@dataclass(frozen=True, slots=True)
class _Comparison(Condition):
    test: Callable[[Any, Any, Arrays], bool]
    operand: Any
    expected: Any

    def matches(self, value: Any, arrays: Arrays) -> bool:
        return self.test(value, self.operand, arrays)

    def reasons(self, value: Any, path: str, arrays: Arrays) -> Iterator[Reason]:
        yield Reason(path, self.expected, value)


def _key(scalar: Any) -> Any:
    """Return a key that is equal for equal scalars: 1 is 1.0, and neither is true."""
    return (scalar,) if isinstance(scalar, bool) else scalar


def _kind(value: Any) -> str:
    """Return `number`, `string` or "": what can be ordered."""
    if isinstance(value, str):
        return "string"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if is_number else ""


def _equals(value: Any, operand: Any, _: Arrays) -> bool:
    return _same(value, operand)


def _same(value: Any, operand: Any) -> bool:
    """Compare JSON, at a cost in proportion to the operand."""
    if isinstance(value, bool) or isinstance(operand, bool):
        return value is operand
    if isinstance(value, list) and isinstance(operand, list):
        return len(value) == len(operand) and all(map(_same, value, operand))
    if isinstance(value, dict) and isinstance(operand, dict):
        return value.keys() == operand.keys() and all(
            _same(value[name], operand[name]) for name in operand
        )
    return bool(value == operand)


def _one_of(value: Any, operand: Any, _: Arrays) -> bool:
    return _is_scalar(value) and _key(value) in operand


def _has(value: Any, operand: Any, arrays: Arrays) -> bool:
    """Return True if an array has an item that equals a scalar."""
    items = arrays.get(id(value))
    if items is None:
        items = arrays[id(value)] = _keys([*filter(_is_scalar, value)])
    return _key(operand) in items


def _equals_or_has(value: Any, operand: Any, arrays: Arrays) -> bool:
    if isinstance(value, list):
        return _has(value, operand, arrays)
    return _same(value, operand)


def _has_all(value: Any, operand: Any, arrays: Arrays) -> bool:
    return isinstance(value, list) and all(
        _has(value, item, arrays) for item in operand
    )


def _contains(value: Any, operand: Any, arrays: Arrays) -> bool:
    if isinstance(value, list):
        return _has(value, operand, arrays)
    return isinstance(value, str) and isinstance(operand, str) and operand in value


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    def test(value: Any, operand: Any, _: Arrays) -> bool:
        return _kind(value) == _kind(operand) and compare(value, operand)

    return test


def _of_text(compare: Callable[[str, str], bool]) -> Callable[..., bool]:
    def test(value: Any, operand: Any, _: Arrays) -> bool:
        return isinstance(value, str) and compare(value, operand)

    return test


def _negated(test: Callable[..., bool]) -> Callable[..., bool]:
    return lambda value, operand, arrays: not test(value, operand, arrays)


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, list | dict | _Absent)


def _are_scalars(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_scalar, value))


@dataclass(frozen=True, slots=True)
class Operator:
    """How an operator compares; what its operand is, and the form in which it is compared."""

    test: Callable[..., bool]
    accepts: Callable[[Any], bool]
    rule: str
    prepare: Callable[[Any], Any] = lambda operand: operand


def _keys(values: Sequence[Any]) -> frozenset[Any]:
    return frozenset(map(_key, values))


_ORDERED = (lambda value: bool(_kind(value)), "must be a number or a string")
_TEXT = (lambda value: isinstance(value, str), "must be a string")
_SCALAR = (_is_scalar, "must be a string, a number, true, false or null")
_SCALARS = (_are_scalars, "must be an array of strings, numbers, booleans or nulls")
_ANYTHING = (lambda _: True, "")

OPERATORS: Mapping[str, Operator] = {
    "$eq": Operator(_equals, *_ANYTHING),
    "$neq": Operator(_negated(_equals), *_ANYTHING),
    "$gt": Operator(_ordered(lambda value, operand: value > operand), *_ORDERED),
    "$gte": Operator(_ordered(lambda value, operand: value >= operand), *_ORDERED),
    "$lt": Operator(_ordered(lambda value, operand: value < operand), *_ORDERED),
    "$lte": Operator(_ordered(lambda value, operand: value <= operand), *_ORDERED),
    "$in": Operator(_one_of, *_SCALARS, _keys),
    "$nin": Operator(_negated(_one_of), *_SCALARS, _keys),
    "$startsWith": Operator(_of_text(str.startswith), *_TEXT),
    "$endsWith": Operator(_of_text(str.endswith), *_TEXT),
    "$contains": Operator(_contains, *_SCALAR),
    "$exist": Operator(
        lambda value, operand, _: (value is not ABSENT) is operand,
        lambda value: isinstance(value, bool),
        "must be true or false",
    ),
}
LOGICAL = ("$and", "$or", "$not")


def compiled(source: Any) -> Filter:
    """Return a filter. Raises FilterError."""
    if not isinstance(source, dict):
        raise FilterError("filter must be an object.")
    nodes = _check_size(source)
    if nodes > MAX_NODES:
        raise FilterError(f"filter has more than {MAX_NODES} parts.")
    if len(orjson.dumps(source)) > MAX_BYTES:
        raise FilterError(f"filter is over {MAX_BYTES} bytes.")
    return Filter(_compile(source, "filter"))


@lru_cache(maxsize=4096)
def from_json(text: str) -> Filter:
    """Return a stored filter; each is compiled once in a process."""
    return compiled(orjson.loads(text))


def _check_size(source: Any) -> int:
    """Return how many parts a filter has. Raises FilterError: too deep, or too many $contains."""
    nodes = contains = 0
    left = [(source, 1)]
    while left:
        value, depth = left.pop()
        nodes += 1
        if nodes > MAX_NODES:
            break
        texts = value if isinstance(value, dict) else [value]
        if any(isinstance(text, str) and "\0" in text for text in texts):
            raise FilterError("filter must not hold NUL.")
        if not isinstance(value, dict | list):
            continue
        if depth > MAX_DEPTH:
            raise FilterError(f"filter is nested deeper than {MAX_DEPTH} levels.")
        if isinstance(value, dict):
            contains += "$contains" in value
        inner = value.values() if isinstance(value, dict) else value
        left += ((item, depth + 1) for item in inner)
    if contains > MAX_CONTAINS:
        raise FilterError(f"filter has more than {MAX_CONTAINS} $contains.")
    return nodes


def _compile(source: Any, path: str) -> Condition:
    if isinstance(source, dict):
        parts = [_member(name, value, path) for name, value in source.items()]
        return parts[0] if len(parts) == 1 else _All(parts)
    if isinstance(source, list):
        if not _are_scalars(source):
            raise FilterError(f"{path} {_SCALARS[1]}.")
        return _Comparison(_has_all, source, source)
    return _Comparison(_equals_or_has, source, source)


def _member(name: str, value: Any, path: str) -> Condition:
    inner = f"{path}.{name}"
    if name == "$not":
        return _Not(_compile(value, inner), value)
    if name in LOGICAL:
        if not isinstance(value, list) or not value:
            raise FilterError(f"{inner} must be an array of at least one condition.")
        parts = [_compile(each, f"{inner}[{n}]") for n, each in enumerate(value)]
        return _All(parts) if name == "$and" else _Any(parts)
    if operator := OPERATORS.get(name):
        if not operator.accepts(value):
            raise FilterError(f"{inner} {operator.rule}.")
        return _Comparison(operator.test, operator.prepare(value), {name: value})
    if name.startswith("$"):
        known = ", ".join([*OPERATORS, *LOGICAL])
        raise FilterError(f"{inner} is no operator; known are {known}.")
    return _Member(name, _compile(value, inner))
