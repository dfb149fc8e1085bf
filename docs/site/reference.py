"""Markdown from the published schemas: docs/api/openapi.json and docs/api/catalog.graphql."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from graphql import GraphQLSchema, build_schema
from graphql.type import (
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLNamedType,
    GraphQLObjectType,
)

API = Path(__file__).parent.parent / "api"


def rest() -> str:
    """Return a section for each tag of the OpenAPI document, and its operations."""
    document = json.loads((API / "openapi.json").read_text())
    sections: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if isinstance(operation, dict) and "responses" in operation:
                tag = next(iter(operation.get("tags", ["Other"])))
                lines = sections.setdefault(tag, [f"## {tag}\n"])
                lines.append("\n".join(_operation(path, method, operation)))
    schemas = document["components"]["schemas"]
    sections["Schemas"] = [
        "## Schemas\n",
        *(_schema(*item) for item in schemas.items()),
    ]
    return "\n".join(line for lines in sections.values() for line in lines)


def _schema(name: str, schema: dict[str, Any]) -> str:
    lines = [f"### `{name}`\n", _cell(schema.get("description", "")), ""]
    if properties := schema.get("properties"):
        lines += ["| field | type | required | description |", "|---|---|---|---|"]
        required = schema.get("required", ())
        for field, item in properties.items():
            needed = "yes" if field in required else ""
            text = _cell(item.get("description", ""))
            lines.append(f"| `{field}` | {_type(item)} | {needed} | {text} |")
    else:
        lines.append(f"Type: {_type(schema)}")
    return "\n".join([*lines, ""])


def _operation(path: str, method: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### `{method.upper()} {path}`\n"
    yield _cell(operation.get("summary", "")) + "\n"
    yield operation.get("description", "") + "\n"
    if parameters := operation.get("parameters"):
        yield "| parameter | in | type | description |\n|---|---|---|---|"
        for item in parameters:
            text = _cell(item.get("description", ""))
            kind = _type(item.get("schema", {}))
            yield f"| `{item['name']}` | {item['in']} | {kind} | {text} |"
        yield ""
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"Request body, `{media}`: {_type(content.get('schema', {}))}\n"
    for sample in operation.get("x-codeSamples", ()):
        yield f"<details><summary>{sample['label']}</summary>\n"
        lexer = {"curl": "bash"}.get(sample["lang"], sample["lang"])
        yield f"```{lexer}\n{sample['source']}```\n"
        yield "</details>\n"
    yield "| status | response | body |\n|---|---|---|"
    for status, response in operation["responses"].items():
        bodies = [
            _type(content.get("schema", {}))
            for content in response.get("content", {}).values()
        ]
        text = _cell(response.get("description", ""))
        yield f"| {status} | {text} | {', '.join(dict.fromkeys(bodies))} |"
    yield ""


def _type(schema: dict[str, Any]) -> str:
    """Name a schema: its component, its type, or the types that it combines."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[`{name}`](#{name.lower()})"
    if "items" in schema:
        return f"array of {_type(schema['items'])}"
    for key in ("oneOf", "anyOf", "allOf"):
        if key in schema:
            return " or ".join(_type(item) for item in schema[key])
    if enum := schema.get("enum"):
        return ", ".join(f"`{item}`" for item in enum)
    if properties := schema.get("properties"):
        return "object of " + ", ".join(f"`{name}`" for name in properties)
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def graphql() -> str:
    """Return a section for each kind of type of the catalog's schema."""
    schema = build_schema((API / "catalog.graphql").read_text())
    roots = [schema.query_type, schema.mutation_type]
    types = [
        item
        for name, item in sorted(schema.type_map.items())
        if not name.startswith("__") and item not in roots
    ]
    kinds: dict[str, Callable[[GraphQLNamedType], bool]] = {
        "Objects": lambda item: isinstance(item, GraphQLObjectType),
        "Inputs": lambda item: isinstance(item, GraphQLInputObjectType),
        "Enumerations": lambda item: isinstance(item, GraphQLEnumType),
    }
    parts = [_roots(schema)]
    for title, belongs in kinds.items():
        chosen = [item for item in types if belongs(item)]
        parts += [f"## {title}\n", *(_named(item) for item in chosen)]
    return "\n".join(parts)


def _roots(schema: GraphQLSchema) -> str:
    roots = {"Queries": schema.query_type, "Mutations": schema.mutation_type}
    return "\n".join(
        f"## {title}\n\n{_rows(root.fields)}" for title, root in roots.items() if root
    )


def _named(item: GraphQLNamedType) -> str:
    head = f"### `{item.name}`\n\n{item.description or ''}\n"
    if isinstance(item, GraphQLEnumType):
        return head + "\n" + ", ".join(f"`{value}`" for value in item.values) + "\n"
    return head + "\n" + _rows(getattr(item, "fields", {}))


def _rows(fields: dict[str, Any]) -> str:
    lines = ["| field | arguments | type | description |", "|---|---|---|---|"]
    for name, field in fields.items():
        arguments = field.args.items() if isinstance(field, GraphQLField) else ()
        listed = ", ".join(f"`{key}: {value.type}`" for key, value in arguments)
        text = _cell(field.description or "")
        lines.append(f"| `{name}` | {listed} | `{field.type}` | {text} |")
    return "\n".join(lines) + "\n"


# By the name of the page that it extends.
PAGES: dict[str, Callable[[], str]] = {
    "docs/api/rest": rest,
    "docs/api/graphql": graphql,
}
