"""Random documents over a schema: fragments, aliases, conditions, merged fields, odd values.

Most are valid. A field with arguments has an alias of its own, so that repeated fields can be
merged.
"""

import json
from random import Random
from typing import Any, NamedTuple

from graphql import (
    GraphQLInputObjectType,
    GraphQLObjectType,
    GraphQLSchema,
    get_named_type,
    is_list_type,
    is_required_input_field,
)

MOST_LISTS = 3  # within one another
USUAL: dict[str, list[Any]] = {
    "ID": [1, "2", "3", "4"],
    "Int": [1, 2, 3],
    "String": ["al", "ALPHA", "omega", "b"],
}
ODD: dict[str, list[Any]] = {
    "ID": [0, "-1", "01", "x", "", "٣", 2**31, str(2**63 - 1), str(2**63), 1.5],
    "Int": [0, -1, 5, 100, 1_001, 2**31 - 1, 2**31, "1"],
    "String": ["", " ", "ß", "%", "_", "\\", "a\0b", "ΐ" * 255, "x" * 256, 1],
}


class Document(NamedTuple):
    text: str
    variables: dict[str, Any]


class Writer:
    """Writes one document; the same seed writes the same one."""

    def __init__(self, schema: GraphQLSchema, seed: int) -> None:
        self.schema, self.random = schema, Random(seed)  # noqa: S311
        self.fragments: list[str] = []
        self.names = 0

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def document(self) -> Document:
        self.variables: dict[str, tuple[str, Any]] = {}
        kind = "mutation" if self.chance(30) else "query"
        root = (
            self.schema.mutation_type if kind == "mutation" else self.schema.query_type
        )
        assert root is not None
        selections = self.selections(root, self.random.randint(2, 6), 0)
        declared = ", ".join(
            f"${name}: {kind}" for name, (kind, _) in self.variables.items()
        )
        values = {
            name: value
            for name, (_, value) in self.variables.items()
            if value is not None or self.chance(70)
        }
        text = f"{kind} A{declared and f'({declared})'} {selections}"
        return Document("\n".join([text, *self.fragments]), values)

    def selections(self, kind: GraphQLObjectType, depth: int, lists: int) -> str:
        parts = [
            self.selection(kind, depth, lists) for _ in range(self.random.randint(1, 5))
        ]
        return (
            "{ " + " ".join([*parts, "__typename"] if self.chance(20) else parts) + " }"
        )

    def selection(self, kind: GraphQLObjectType, depth: int, lists: int) -> str:
        roll = self.random.randrange(100)
        if depth and roll < 10:
            on = self.random.choice(["", f"on {kind.name} "])
            return (
                f"... {on}{self.condition()} {self.selections(kind, depth - 1, lists)}"
            )
        if depth and roll < 20:
            name = f"F{len(self.fragments)}"
            place = len(self.fragments)
            self.fragments.append("")
            body = self.selections(kind, depth - 1, lists)
            self.fragments[place] = f"fragment {name} on {kind.name} {body}"
            return " ".join(
                [f"...{name} {self.condition()}"] * self.random.choice([1, 1, 2])
            )
        return self.field(kind, depth, lists)

    def field(self, kind: GraphQLObjectType, depth: int, lists: int) -> str:
        name, field = self.random.choice(list(kind.fields.items()))
        output, lists = get_named_type(field.type), lists + is_list_type(field.type)
        is_object = isinstance(output, GraphQLObjectType)
        if is_object and (depth == 0 or lists > MOST_LISTS):
            return f"{self.random.choice(['', 'kind: '])}__typename {self.condition()}"
        arguments = [
            f"{key}: {self.shown(argument.type)}"
            for key, argument in field.args.items()
            if is_required_input_field(argument) or self.chance(50)
        ]
        alias = ""
        if field.args or self.chance(25):
            self.names += 1
            alias = f"r{self.names}: "
        call = f"{alias}{name}{(arguments and '(' + ', '.join(arguments) + ')') or ''}"
        below = self.selections(output, depth - 1, lists) if is_object else ""
        return f"{call} {self.condition()} {below}"

    def condition(self) -> str:
        if not self.chance(12):
            return ""
        value: Any = self.chance(50)
        shown = json.dumps(value)
        if self.chance(60):
            shown = self.variable("Boolean!", value)
        elif self.chance(10):
            shown = self.variable("Boolean = true", None)
        return f"@{self.random.choice(['skip', 'include'])}(if: {shown})"

    def variable(self, kind: str, value: Any) -> str:
        name = f"v{len(self.variables)}"
        self.variables[name] = kind, value
        return f"${name}"

    def shown(self, kind: Any) -> str:
        """Write a value of an input type, as a variable or in place."""
        value = self.value(kind)
        if self.chance(40):
            return self.variable(str(kind), value)
        if isinstance(value, dict):
            parts = (f"{key}: {json.dumps(each)}" for key, each in value.items())
            return "{" + ", ".join(parts) + "}"
        return json.dumps(value)

    def value(self, kind: Any) -> Any:
        named = get_named_type(kind)
        if isinstance(named, GraphQLInputObjectType):
            return {
                key: self.value(field.type)
                for key, field in named.fields.items()
                if is_required_input_field(field) or self.chance(50)
            }
        if kind is named and self.chance(10):
            return None
        return self.random.choice((ODD if self.chance(12) else USUAL)[named.name])
