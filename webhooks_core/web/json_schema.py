"""Helpers for JSON Schemas of event types and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
DATE_TIME = {"type": "string", "format": "date-time"}

# For an object with properties that another system defines.
AND_OTHERS: dict[str, Any] = {"additionalProperties": {}}


def object_of(
    required: Sequence[str] | None = None, /, **properties: Any
) -> dict[str, Any]:
    """Return the schema of an object; without `required` every property is required."""
    names = list(properties if required is None else required)
    shape: dict[str, Any] = {"type": "object", "properties": properties}
    return shape | ({"required": names} if names else {})


def described(text: str, schema: dict[str, Any] = STRING) -> dict[str, Any]:
    """Return a schema with a description for the reference."""
    return schema | {"description": text}


def array_of(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def ref(name: str) -> dict[str, str]:
    """Return a reference to a component of the document."""
    return {"$ref": f"#/components/schemas/{name}"}
