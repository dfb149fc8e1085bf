"""Limits of a document, checked in one linear pass before it is validated, and those of an answer.

A fragment is measured once, however often it is spread: its totals are added at each spread.
So a chain of fragments that doubles at every link costs as many steps as it has links.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLList,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    NamedTypeNode,
    OperationDefinitionNode,
    SchemaMetaFieldDef,
    SelectionNode,
    SelectionSetNode,
    TypeMetaFieldDef,
    get_named_type,
    get_nullable_type,
)

from catalog.errors import QueryTooComplexError, ResultTooLargeError


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one document; a list is assumed to have `list_size` rows."""

    characters: int = 100_000
    tokens: int = 2_000
    fragments: int = 50
    repeats: int = 100  # fields whose response name their selection set already has
    nesting: int = 50  # of selection sets as written, through fragments
    depth: int = 12
    introspection_depth: int = 20
    aliases: int = 30
    alias_characters: int = 1_000  # each row of the answer repeats them
    root_fields: int = 20
    directives: int = 50
    expanded_fields: int = 5_000
    cost: int = 1_000_000
    list_size: int = 50
    page_size: int = 100
    introspection_list_size: int = 10
    nesting_of_variables: int = 50
    filter_depth: int = 10
    filter_conditions: int = 50  # each is compared with every row that is read
    filter_values: int = 1_000  # of the lists of one filter


LIMITS = Limits()
META_FIELDS = {"__schema": SchemaMetaFieldDef, "__type": TypeMetaFieldDef}
INTROSPECTION = META_FIELDS.keys()
DEPTHS = {"depth", "introspection_depth"}  # of which the deepest part counts


@dataclass(slots=True)
class Size:
    """The size of a part of a document with every fragment expanded, in the order of checks."""

    nesting: int = 0
    depth: int = 0
    introspection_depth: int = 0
    aliases: int = 0
    alias_characters: int = 0
    root_fields: int = 0
    directives: int = 0
    expanded_fields: int = 0
    cost: int = 0

    def add(self, other: Size) -> None:
        """Add a part beside; its nesting is that of its own selection set."""
        for name in Size.__slots__[1:]:
            one, two = getattr(self, name), getattr(other, name)
            setattr(self, name, max(one, two) if name in DEPTHS else one + two)


def is_list(output: Any) -> bool:
    return isinstance(get_nullable_type(output), GraphQLList)


class Measurement:
    """One pass over one document, which need not be valid.

    `cost` is that of the most expensive operation.
    """

    def __init__(self, document: DocumentNode, schema: GraphQLSchema) -> None:
        """Measure the document, or raise QueryTooComplexError."""
        self.document, self.schema = document, schema
        self.fragments = {
            node.name.value: node
            for node in document.definitions
            if isinstance(node, FragmentDefinitionNode)
        }
        self.sizes: dict[str, Size] = {}
        self.repeats = 0
        self.cost = self.run()

    def run(self) -> int:
        check("fragments", len(self.fragments))
        for name in self.fragments:
            self.fragment(name, 0)
        sizes = [
            self.operation(node)
            for node in self.document.definitions
            if isinstance(node, OperationDefinitionNode)
        ]
        check("repeats", self.repeats)
        for size in sizes:
            for limit in Size.__slots__:
                check(limit, getattr(size, limit))
        return max((size.cost for size in sizes), default=0)

    def operation(self, node: OperationDefinitionNode) -> Size:
        root = self.schema.get_root_type(node.operation)
        size = self.selection_set(node.selection_set, root, 0)
        size.directives += len(node.directives or ())
        for variable in node.variable_definitions or ():
            size.directives += len(variable.directives or ())
        return size

    def fragment(self, name: str, level: int) -> Size:
        """Measure a fragment once; a cycle adds nothing, because validation refuses it.

        `level` is the nesting of its selection set, which counts wherever it is spread.
        """
        if name not in self.sizes:
            self.sizes[name] = Size()
            node = self.fragments.get(name)
            if node is not None:
                parent = self.schema.get_type(node.type_condition.name.value)
                self.sizes[name] = self.selection_set(node.selection_set, parent, level)
                self.sizes[name].directives += len(node.directives or ())
        check("nesting", level + self.sizes[name].nesting)
        return self.sizes[name]

    def selection_set(
        self,
        node: SelectionSetNode | None,
        parent: object,
        level: int,
        names: set[str] | None = None,
    ) -> Size:
        """Measure a selection set; an inline fragment shares the response names around it."""
        size = Size()
        if node is None:
            return size
        check("nesting", level)  # bounds this recursion
        names = set() if names is None else names
        for selection in node.selections:
            size.directives += len(selection.directives or ())
            part = self.selection(selection, parent, level, names)
            size.add(part)
            if not isinstance(selection, FieldNode) or selection.selection_set:
                size.nesting = max(size.nesting, part.nesting + 1)
        return size

    def selection(
        self, node: SelectionNode, parent: object, level: int, names: set[str]
    ) -> Size:
        if isinstance(node, FieldNode):
            response_name = (node.alias or node.name).value
            self.repeats += response_name in names
            names.add(response_name)
            return self.field(node, parent, level)
        if isinstance(node, FragmentSpreadNode):
            return self.fragment(node.name.value, level + 1)
        assert isinstance(node, InlineFragmentNode)  # noqa: S101 - the third and last kind
        condition: NamedTypeNode | None = node.type_condition
        if condition is not None:
            parent = self.schema.get_type(condition.name.value)
        return self.selection_set(node.selection_set, parent, level + 1, names)

    def field(self, node: FieldNode, parent: object, level: int) -> Size:
        name = node.name.value
        fields = parent.fields if isinstance(parent, GraphQLObjectType) else {}
        field = META_FIELDS.get(name) or fields.get(name)
        output = get_named_type(field.type) if field else None
        below = self.selection_set(node.selection_set, output, level + 1)
        rows = list_size(parent) if field is not None and is_list(field.type) else 1
        introspects = name in INTROSPECTION
        is_root = parent in (self.schema.query_type, self.schema.mutation_type)
        return Size(
            nesting=below.nesting,
            depth=0 if introspects else below.depth + 1,
            introspection_depth=below.depth if introspects else 0,
            aliases=below.aliases + (node.alias is not None),
            alias_characters=below.alias_characters
            + (len(node.alias.value) if node.alias else 0),
            root_fields=int(is_root),
            directives=below.directives,
            expanded_fields=below.expanded_fields + 1,
            cost=1 + math.ceil(rows * below.cost * share_of_page(node, output)),
        )


def check(limit: str, value: int) -> None:
    """Raise QueryTooComplexError if a value exceeds its limit."""
    maximum: int = getattr(LIMITS, limit)
    if value > maximum:
        raise QueryTooComplexError(limit.replace("_", " "), maximum)


def share_of_page(node: FieldNode, output: object) -> float:
    """Return which part of the largest page a connection is asked for; 1 for other fields."""
    if isinstance(output, GraphQLObjectType) and output.name.endswith("Connection"):
        for argument in node.arguments or ():
            number = argument.value
            if argument.name.value in {"first", "last"} and (
                isinstance(number, IntValueNode)
                and re.fullmatch(r"\d\d?", number.value)
            ):
                return int(number.value) / LIMITS.page_size
    return 1


def list_size(parent: object) -> int:
    """Return how many rows a list field of this type is assumed to have."""
    name = parent.name if isinstance(parent, GraphQLObjectType) else ""
    if name.startswith("__"):
        return LIMITS.introspection_list_size
    if name.endswith("Connection"):
        return LIMITS.page_size
    return LIMITS.list_size


# ── The answer ─────────────────────────────────────────────────────────────────────────

MOST_CHARACTERS = 10_000_000
MOST_VALUES = 2_000_000  # each takes memory, a number and a null too


class Allowance:
    """How much of one unit an answer may still have."""

    def __init__(self, limit: int, unit: str) -> None:
        self.limit = self.left = limit
        self.unit = unit

    def spend(self, amount: int) -> None:
        """Take an amount, or raise ResultTooLargeError."""
        if amount > self.left:
            raise ResultTooLargeError(self.limit, self.unit)
        self.left -= amount


class Budget:
    """What one answer may still have, each as often as it appears."""

    def __init__(
        self, rows: int, characters: int = MOST_CHARACTERS, values: int = MOST_VALUES
    ) -> None:
        self.rows = Allowance(rows, "rows")
        self.characters = Allowance(characters, "characters")
        self.values = Allowance(values, "values")

    @property
    def enough(self) -> int:
        """How many rows a query must fetch to show that there are too many."""
        return self.rows.left + 1
