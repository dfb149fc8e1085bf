"""Helpers for JSON Schemas of event types, and for hand-written parts of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def body(
    schema: Any, examples: Mapping[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    """Return the body of a request or a response, with examples by their names."""
    media = {"schema": schema}
    if examples:
        media["examples"] = {name: {"value": value} for name, value in examples.items()}
    return fields | {"content": {"application/json": media}}


def parameter(name: str, text: str, schema: Any = STRING, **fields: Any) -> Any:
    """Return a parameter, by default a required one of the query."""
    names = {"name": name, "in": "query", "required": True}
    return names | {"schema": schema, "description": text} | fields


def operation(
    name: str, summary: str, responses: Mapping[int, Any], **fields: Any
) -> dict[str, Any]:
    """Return an operation, by default one that needs no credentials."""
    names = {"operationId": name, "summary": summary, "security": [{}]}
    by_status = {str(status): responses[status] for status in sorted(responses)}
    return names | {"responses": by_status} | fields


def add_operations(
    document: dict[str, Any],
    operations: Mapping[tuple[str, str], Any],
    schemas: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Add operations, by method and path, and the schemas that they refer to by name."""
    for (method, path), described_operation in operations.items():
        document["paths"].setdefault(path, {})[method] = described_operation
    components = document["components"]
    named = components.get("schemas", {}) | (schemas or {})
    components["schemas"] = dict(sorted(named.items()))
    return document
