"""JSON as clients and model servers send it: integers of any size, and parts of any shape. Pure.

orjson reads and writes; the standard library takes over for integers above 64 bits and for
halves of surrogate pairs (RFC 8259, section 8.2), which orjson does not have.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Never

import orjson

from webhooks_core.web.json_values import MAX_VALUES as MOST
from webhooks_core.web.json_values import check_values

MAX_VALUES = MOST
LONG_NUMBER = b"0" * 19  # an integer that may not fit into 64 bits
# A response with embeddings has many values.
MAX_VALUES_READ = 4 * MAX_VALUES
# Of what the standard library writes; orjson alone would stop at 254.
MAX_DEPTH = 500
ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")


def loads(raw: bytes, most: int = MAX_VALUES) -> Any:
    """Return JSON. Raises ValueError, also for more than so many values."""
    check_values(raw, most)
    if LONG_NUMBER in raw.translate(ZEROS):
        return _exactly(raw)
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        if HALF_PAIR.search(raw):
            return _exactly(raw)
        raise


def _exactly(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode(), parse_float=_finite, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _refuse(text: str) -> Never:
    raise ValueError(f"{text[:100]} is not JSON")


def dumps(value: Any) -> bytes:
    """Return compact JSON. Raises ValueError: it is nested too deeply."""
    try:
        return orjson.dumps(value)
    except TypeError:
        if not _ends_within(value, MAX_DEPTH):
            raise ValueError("nested too deeply") from None
        return json.dumps(value, separators=(",", ":")).encode()


def _ends_within(value: Any, depth: int) -> bool:
    """Return True if a value is not deeper. Each version of Python has another limit of its own."""
    level = [value]
    for _ in range(depth):
        parents = [item for item in level if isinstance(item, dict | list)]
        level = [
            child
            for parent in parents
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return True
    return False


def mapping(value: Any) -> Mapping[str, Any]:
    """Return an object; an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; nothing for any other value."""
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]


def member(value: Any, *names: str) -> Any:
    """Return a member at a path; None where there is none."""
    for name in names:
        value = mapping(value).get(name)
    return value


def text_of(value: Any) -> str:
    """Return a text; an empty one for any other value."""
    return value if isinstance(value, str) else ""


def parts_in(*values: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of messages, items or tools, and those in their contents at every depth."""
    left = [*values]
    while left:
        item = left.pop()
        if isinstance(item, list):
            left += item
        elif isinstance(item, dict):
            yield item
            left += (item.get("content"), item.get("output"))
