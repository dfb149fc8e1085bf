"""Random documents over the published schema: several operations, every argument, odd values.

Most are valid. Response names are unique where arguments or conditions differ, so that
repeated fields can be merged.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any, TypeVar

from graphql import (
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNamedType,
    GraphQLNonNull,
    GraphQLObjectType,
    get_named_type,
    is_leaf_type,
)
from hypothesis import strategies as st

from tests.catalog.reference import schema

LARGE = [2**31 - 1, 2**31, 2**63 - 1, 2**63]
NAMES = ["alpha", "ALPHA", "Alphabet", "al", "", " ", "ß", "%", "a\0b", "x" * 256]
VALUES: dict[str, list[Any]] = {
    "ID": [1, 2, 3, "1", "2", "4", 0, "0", -1, "-1", "01", 1.0, 1.5, True, "x", "٣"]
    + LARGE
    + [str(number) for number in LARGE],
    "Int": [0, 1, 2, 3, 5, 100, -1, 101, 2**31 - 1, 2**31, -(2**31), 1.0, 1.5, "1", True],
    "String": [*NAMES, *NAMES, 1, True, ["alpha"]],
    "Boolean": [True, False, True, False, "true", 1],
}  # fmt: skip
USUAL: dict[str, list[Any]] = {
    "ID": [1, "2", "3", "4"],
    "Int": [1, 2, 3],
    "String": ["al", "Omega"],
    "Boolean": [True, False],
}
PLACES: list[list[Any]] = [
    [1], [3], [999], [0], [2**40], [2**63], ["alpha", 2], ["Beta", 0], ["", 1], [1, 2],
    [2**33, 1], [2, "Beta", 2], ["al", 3, 6], ["Last", "First", 1], ["Z", "a", 9], [True], [None], [], ["a\0", 1], [1.5],
]  # fmt: skip
CURSORS = [
    base64.urlsafe_b64encode(json.dumps(place).encode()).decode() for place in PLACES
]
KEYS = {"authorId", "categoryId", "id", "authorIdIn", "categoryIdIn", "idIn"}
COMBINING = {"and", "or", "not"}
BULK = {"addBooks", "upsertBooks", "deleteBooks"}  # the reference does not know them
T = TypeVar("T")
BOOLEAN = GraphQLNonNull(GraphQLBoolean)


@dataclass
class Variable:
    """A variable of an operation: its type, its default if any, and what is sent for it."""

    type: str
    default: str
    sent: list[Any]  # empty: left out


@dataclass
class Operation:
    """An operation in the making. Variables are named alike in all operations of a document."""

    draw: st.DrawFn
    name: str
    variables: dict[str, Variable] = field(default_factory=dict)
    fragments: list[str] = field(default_factory=list)
    names: int = 0

    def pick(self, *options: T) -> T:
        return self.draw(st.sampled_from(options))

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == one_in

    def fresh(self) -> str:
        self.names += 1
        return f"r{self.names}"

    def value(self, type_: Any, name: str = "", depth: int = 2) -> Any:  # noqa: PLR0911
        """Return a value for an input type, seldom one that does not fit."""
        if isinstance(type_, GraphQLNonNull):
            return self.value(type_.of_type, name, depth)
        if isinstance(type_, GraphQLList):
            values = [
                self.value(type_.of_type, name, depth)
                for _ in range(self.draw(st.integers(0, 3)))
            ]
            # One value stands for a list of one.
            return values[0] if values and self.chance(10) else values
        if isinstance(type_, GraphQLInputObjectType):
            return {
                key: None if self.chance(20) else self.value(part.type, key, depth - 1)
                for key, part in type_.fields.items()
                if not self.chance(20)
                and (_needed(part.type) or self.chance(2 if depth > 1 else 3))
                and (depth or key not in COMBINING)
            }
        if isinstance(type_, GraphQLEnumType):
            return self.pick(*type_.values)
        if name in {"after", "before"}:
            return self.pick(*CURSORS[:9], *CURSORS, "", "x", "é")
        if name in KEYS and self.chance(2):
            return self.pick(1, 2, 3)
        odd = self.chance(3 if type_.name == "ID" else 8)
        options: list[Any] = (VALUES if odd else USUAL)[type_.name]
        return self.pick(*options)

    def literal(self, type_: Any, value: Any) -> str:
        """Write a value in GraphQL, now and then with a variable inside."""
        if isinstance(type_, GraphQLNonNull):
            type_ = type_.of_type
        if isinstance(type_, GraphQLList):
            if not isinstance(value, list):
                return self.literal(type_.of_type, value)
            shown = (self.shown(type_.of_type, part) for part in value)
            return "[" + ", ".join(shown) + "]"
        if isinstance(value, dict):
            parts = (
                f"{key}: {self.shown(type_.fields[key].type, part)}"
                for key, part in value.items()
            )
            return "{" + ", ".join(parts) + "}"
        if isinstance(type_, GraphQLEnumType) and not self.chance(20):
            return str(value)
        return json.dumps(value, ensure_ascii=False)

    def shown(self, type_: Any, value: Any) -> str:
        return (
            self.variable(type_, value)
            if self.chance(4)
            else self.literal(type_, value)
        )

    def variable(self, type_: Any, value: Any) -> str:
        name, default = f"v{len(self.variables)}", ""
        sent = [value]
        inner = type_.of_type if isinstance(type_, GraphQLNonNull) else type_
        if self.chance(4):  # with a default, of a type that may be null
            type_ = inner
            usual: list[Any] = USUAL.get(getattr(inner, "name", ""), [None])
            default = f" = {json.dumps(self.pick(*usual))}"
            sent = self.pick([], [None], [value])
        elif self.chance(10):
            sent = self.pick([], [None], [["wrong"]])
        self.variables[name] = Variable(str(type_), default, sent)
        return f"${name}"

    def arguments(self, arguments: dict[str, Any]) -> str:
        parts = []
        for name, argument in arguments.items():
            needed = _needed(argument.type)
            likely = needed or (name not in {"last", "before"} and self.chance(2))
            if (likely and not self.chance(30)) or self.chance(12):
                value = None if self.chance(20) else self.value(argument.type, name)
                parts.append(f"{name}: {self.shown(argument.type, value)}")
        return f"({', '.join(parts)})" if parts else ""

    def condition(self) -> str:
        if not self.chance(7):
            return ""
        value = self.pick(True, False)
        shown = (
            self.variable(BOOLEAN, value)
            if self.chance(2)
            else self.literal(BOOLEAN, value)
        )
        return f" @{self.pick('skip', 'include')}(if: {shown})"

    def selections(self, type_: GraphQLObjectType, depth: int) -> str:
        size = self.draw(st.integers(1, 3))
        parts = [self.selection(type_, depth) for _ in range(size)]
        return "{ " + " ".join(parts) + " }"

    def selection(self, type_: GraphQLObjectType, depth: int) -> str:
        match self.pick("field", "field", "field", "field", "inline", "fragment"):
            case "inline" if depth:
                on = self.pick(f" on {type_.name}", "")
                on = " on Author" if self.chance(50) else on
                below = self.selections(type_, depth - 1)
                return f"...{on}{self.condition()} {below}"
            case "fragment" if depth and len(self.fragments) < 4:
                name = f"{self.name}F{len(self.fragments)}"
                self.fragments.append("")
                place = len(self.fragments) - 1
                below = self.selections(type_, depth - 1)
                self.fragments[place] = f"fragment {name} on {type_.name} {below}"
                spread = f"...{name}{self.condition()}"
                return self.pick(spread, f"{spread} ...{name}")
            case _:
                return self.field(type_, depth)

    def field(self, type_: GraphQLObjectType, depth: int) -> str:
        fields = {
            name: field
            for name, field in type_.fields.items()
            if (depth or is_leaf_type(get_named_type(field.type))) and name not in BULK
        }
        if not fields or self.chance(12):
            return "nothing" if self.chance(60) else "__typename"
        name = self.pick(*fields)
        arguments = self.arguments(fields[name].args)
        condition = self.condition()
        alias = f"{self.fresh()}: " if arguments or condition or self.chance(4) else ""
        head = f"{alias}{name}{arguments}{condition}"
        below: GraphQLNamedType = get_named_type(fields[name].type)
        if not isinstance(below, GraphQLObjectType):
            return self.pick(head, head, f"{head} {head}")
        texts = [self.selections(below, depth - 1) for _ in range(self.pick(1, 1, 2))]
        return " ".join(f"{head} {text}" for text in texts)

    def introspection(self) -> str:
        return self.pick(
            "__schema { queryType { name } }",
            '__type(name: "Book") { name kind fields { name type { name } } }',
            '__type(name: "nothing") { name }',
        )

    def text(self, kind: str) -> str:
        """Return the operation; give every variable that was made up for it a definition."""
        root = schema.type_map["Query" if kind == "query" else "Mutation"]
        assert isinstance(root, GraphQLObjectType)
        body = self.selections(root, self.pick(2, 3, 3, 4))
        if kind == "query" and self.chance(8):
            body = "{ " + self.introspection() + body[1:]
        declared = ", ".join(
            f"${name}: {variable.type}{variable.default}"
            for name, variable in self.variables.items()
        )
        head = f"({declared})" if declared else ""
        return "\n".join([f"{kind} {self.name}{head} {body}", *self.fragments])


def _needed(type_: Any) -> bool:
    return isinstance(type_, GraphQLNonNull)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, str | None, dict[str, Any]]:
    """Return a document, the name of the operation to run, and its variables."""
    count = draw(st.sampled_from([1, 1, 1, 2, 3]))
    operations = [Operation(draw, "ABC"[number]) for number in range(count)]
    kinds = [draw(st.sampled_from(["query"] * 3 + ["mutation"])) for _ in operations]
    text = "\n".join(
        operation.text(kind) for operation, kind in zip(operations, kinds, strict=True)
    )
    chosen = draw(st.sampled_from(operations))
    sent = {
        name: variable.sent[0]
        for name, variable in chosen.variables.items()
        if variable.sent
    }
    name: str | None = chosen.name
    if draw(st.integers(1, 30)) == 30:
        name = draw(st.sampled_from([None, "Other"]))
    return text, name, sent
