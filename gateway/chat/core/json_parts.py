"""Parts of JSON that may be of any shape. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.chat.core.errors import InvalidValueError


def mapping(value: Any) -> Mapping[str, Any]:
    """Return an object; an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; nothing for any other value."""
    items = value if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, dict)]


def member(value: Any, *names: str) -> Any:
    """Return a member at a path; None where there is none."""
    for name in names:
        value = mapping(value).get(name)
    return value


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


def object_in(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object in an optional field of a request. Raises InvalidValueError."""
    value = body.get(name)
    if value is not None and not isinstance(value, dict):
        raise InvalidValueError(f"{name}: must be an object.")
    return value or {}
