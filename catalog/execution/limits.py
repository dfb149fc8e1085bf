"""How much a document may ask for, decided in one linear pass before it is validated.

A fragment is measured once, however often it is spread: its totals are added at each spread,
so that a chain of fragments that doubles at every link costs as many steps as it has links.
"""

from __future__ import annotations

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
    NamedTypeNode,
    OperationDefinitionNode,
    SchemaMetaFieldDef,
    SelectionNode,
    SelectionSetNode,
    TypeMetaFieldDef,
    get_named_type,
    get_nullable_type,
)

from catalog.errors import QueryTooComplexError


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one document; a list is taken to have `list_size` rows."""

    characters: int = 100_000
    tokens: int = 2_000
    fragments: int = 50
    repeats: int = (
        100  # fields with a response name that their selection set has already
    )
    nesting: int = 50  # of selection sets as written, through fragments
    depth: int = 12
    introspection_depth: int = 20
    aliases: int = 30
    root_fields: int = 20
    directives: int = 50
    expanded_fields: int = 5_000
    cost: int = 1_000_000
    list_size: int = 50
    page_size: int = 100
    introspection_list_size: int = 10


LIMITS = Limits()
META_FIELDS = {"__schema": SchemaMetaFieldDef, "__type": TypeMetaFieldDef}
INTROSPECTION = META_FIELDS.keys()


@dataclass(slots=True)
class Size:
    """What a part of a document amounts to with every fragment written out."""

    depth: int = 0
    introspection_depth: int = 0
    aliases: int = 0
    directives: int = 0
    fields: int = 0
    root_fields: int = 0
    cost: int = 0

    def add(self, other: Size) -> None:
        self.depth = max(self.depth, other.depth)
        self.introspection_depth = max(
            self.introspection_depth, other.introspection_depth
        )
        self.aliases += other.aliases
        self.directives += other.directives
        self.fields += other.fields
        self.root_fields += other.root_fields
        self.cost += other.cost


def is_list(output: Any) -> bool:
    return isinstance(get_nullable_type(output), GraphQLList)


def check_size(document: DocumentNode, schema: GraphQLSchema) -> int:
    """Return the cost of the dearest operation, or raise QueryTooComplexError."""
    return Measure(document, schema).run()


class Measure:
    """One pass over one document, which need not be valid."""

    def __init__(
        self, document: DocumentNode, schema: GraphQLSchema, limits: Limits = LIMITS
    ) -> None:
        self.document, self.schema, self.limits = document, schema, limits
        self.fragments = {
            node.name.value: node
            for node in document.definitions
            if isinstance(node, FragmentDefinitionNode)
        }
        self.sizes: dict[str, Size] = {}
        self.repeats = 0

    def run(self) -> int:
        self.at_most("fragments", len(self.fragments))
        for name in self.fragments:
            self.fragment(name, 0)
        operations = [
            self.operation(node)
            for node in self.document.definitions
            if isinstance(node, OperationDefinitionNode)
        ]
        self.at_most("repeats", self.repeats)
        for size in operations:
            self.check(size)
        return max((size.cost for size in operations), default=0)

    def check(self, size: Size) -> None:
        self.at_most("depth", size.depth)
        self.at_most("introspection_depth", size.introspection_depth)
        self.at_most("aliases", size.aliases)
        self.at_most("root_fields", size.root_fields)
        self.at_most("directives", size.directives)
        self.at_most("expanded_fields", size.fields)
        self.at_most("cost", size.cost)

    def at_most(self, limit: str, value: int) -> None:
        most: int = getattr(self.limits, limit)
        if value > most:
            raise QueryTooComplexError.beyond(limit.replace("_", " "), most)

    def operation(self, node: OperationDefinitionNode) -> Size:
        size = self.selection_set(
            node.selection_set, self.schema.get_root_type(node.operation), 0
        )
        variables = node.variable_definitions or ()
        size.directives += len(node.directives or ())
        size.directives += sum(len(one.directives or ()) for one in variables)
        return size

    def fragment(self, name: str, level: int) -> Size:
        """Measure a fragment once; a cycle (validation refuses it) adds nothing."""
        if name not in self.sizes:
            self.sizes[name] = Size()
            node = self.fragments.get(name)
            if node is not None:
                on = self.schema.get_type(node.type_condition.name.value)
                self.sizes[name] = self.selection_set(node.selection_set, on, level)
                self.sizes[name].directives += len(node.directives or ())
        return self.sizes[name]

    def selection_set(
        self,
        node: SelectionSetNode | None,
        parent: object,
        level: int,
        names: set[str] | None = None,
    ) -> Size:
        """Measure a selection set; an inline fragment counts its response names with those around."""
        size = Size()
        if node is None:
            return size
        self.at_most("nesting", level)  # bounds this recursion
        names = set() if names is None else names
        for selection in node.selections:
            size.directives += len(selection.directives or ())
            size.add(self.selection(selection, parent, level, names))
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
        assert isinstance(node, InlineFragmentNode)  # noqa: S101 - there is no fourth kind
        on: NamedTypeNode | None = node.type_condition
        inside = parent if on is None else self.schema.get_type(on.name.value)
        return self.selection_set(node.selection_set, inside, level + 1, names)

    def rows(self, parent: object) -> int:
        """Return how many rows a list field of this type is taken to have."""
        name = parent.name if isinstance(parent, GraphQLObjectType) else ""
        if name.startswith("__"):
            return self.limits.introspection_list_size
        if name.endswith("Connection"):
            return self.limits.page_size
        return self.limits.list_size

    def field(self, node: FieldNode, parent: object, level: int) -> Size:
        name = node.name.value
        fields = parent.fields if isinstance(parent, GraphQLObjectType) else {}
        field = META_FIELDS.get(name) or fields.get(name)
        below = self.selection_set(
            node.selection_set, get_named_type(field.type) if field else None, level + 1
        )
        rows = 1
        if field is not None and is_list(field.type):
            rows = self.rows(parent)
        introspects = name in INTROSPECTION
        is_root = parent in (self.schema.query_type, self.schema.mutation_type)
        return Size(
            depth=0 if introspects else below.depth + 1,
            introspection_depth=below.depth if introspects else 0,
            aliases=below.aliases + (node.alias is not None),
            directives=below.directives,
            fields=below.fields + 1,
            root_fields=int(is_root),
            cost=1 + rows * below.cost,
        )
