"""Parse, measure and validate a document once, and keep it for later requests."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLObjectType,
    GraphQLSchema,
    OperationDefinitionNode,
    SelectionSetNode,
    Source,
    VariableNode,
    get_named_type,
    get_nullable_type,
    is_list_type,
    parse,
    validate,
)
from graphql.execution.execute import get_field_def

from catalog.errors import QueryTooComplexError

MOST_ERRORS = 20
MOST_KEPT = 200_000  # characters of all documents; each takes up to 300 bytes
TOO_DEEP = "Syntax Error: Document is nested too deeply"
TOO_LONG = "Syntax Error: Document contains more than"
INTROSPECTION = {"__schema", "__type"}

MOST_CHARACTERS = 100_000
MOST_TOKENS = 2_000
MOST_NESTING = 50  # of selection sets as written, through fragments
MOST_REPEATS = 100  # validation compares all fields of one response name
ITEMS = 10  # that a list of introspection is assumed to have
MOST_OF_ROWS = (12, 5_000)  # depth, and fields with fragments expanded
MOST_OF_INTROSPECTION = (20, 5_000 * ITEMS)


class RequestRefusedError(Exception):
    """A request that is not executed: its errors and their common code."""

    def __init__(self, code: str, *errors: GraphQLError) -> None:
        super().__init__(errors[0].message)
        self.code, self.errors = code, list(errors)


@dataclass(slots=True)
class Size:
    """The size of a part of a document with its fragments expanded.

    `conditions` are the variables of @skip and @include, with a place of each.
    """

    nesting: int = 0
    depth: int = 0
    fields: int = 0
    conditions: dict[str, VariableNode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A valid document, and the conditions of its operations by name."""

    ast: DocumentNode
    conditions: dict[str | None, dict[str, VariableNode]]


def check(limit: str, value: int, maximum: int) -> None:
    if value > maximum:
        raise QueryTooComplexError(limit, maximum)


class Measurement:
    """One pass over a document, which need not be valid.

    A fragment is measured once, however often it is spread, so that a chain of fragments which
    doubles at every link takes as many steps as it has links.
    """

    def __init__(self, ast: DocumentNode, schema: GraphQLSchema) -> None:
        """Measure the document, or raise QueryTooComplexError."""
        self.schema, self.repeats = schema, 0
        self.sizes: dict[str, Size] = {}
        self.fragments = {
            node.name.value: node
            for node in ast.definitions
            if isinstance(node, FragmentDefinitionNode)
        }
        for name in self.fragments:
            self.fragment(name, 0)
        self.conditions: dict[str | None, dict[str, VariableNode]] = {}
        for node in ast.definitions:
            if isinstance(node, OperationDefinitionNode):
                root = schema.get_root_type(node.operation)
                size = self.selections(node.selection_set, root, 0, set())
                self.conditions[name_of(node)] = size.conditions

    def selections(
        self, node: SelectionSetNode, parent: Any, level: int, names: set[str]
    ) -> Size:
        """Measure a selection set; `names` are the response names that it has already."""
        size = Size()
        check("nesting", level, MOST_NESTING)
        for selection in node.selections:
            part = self.selection(selection, parent, level + 1, names)
            size.nesting = max(size.nesting, part.nesting + 1)
            size.depth = max(size.depth, part.depth)
            size.fields += part.fields
            size.conditions |= part.conditions | conditions_of(selection)
        depth, fields = MOST_OF_INTROSPECTION if is_meta(parent) else MOST_OF_ROWS
        check("depth", size.depth, depth)
        check("expanded fields", size.fields, fields)
        return size

    def selection(self, node: Any, parent: Any, level: int, names: set[str]) -> Size:
        if isinstance(node, FieldNode):
            response_name = (node.alias or node.name).value
            self.repeats += response_name in names
            check("repeated fields", self.repeats, MOST_REPEATS)
            names.add(response_name)
            return self.field(node, parent, level)
        if isinstance(node, FragmentSpreadNode):
            return self.fragment(node.name.value, level)
        if node.type_condition:
            parent = self.schema.get_type(node.type_condition.name.value)
        return self.selections(node.selection_set, parent, level, names)

    def fragment(self, name: str, level: int) -> Size:
        """Measure a fragment once; a cycle adds nothing, because validation refuses it."""
        if name not in self.sizes:
            self.sizes[name] = Size()
            if node := self.fragments.get(name):
                parent = self.schema.get_type(node.type_condition.name.value)
                size = self.selections(node.selection_set, parent, level, set())
                self.sizes[name] = size
        check("nesting", level + self.sizes[name].nesting, MOST_NESTING)
        return self.sizes[name]

    def field(self, node: FieldNode, parent: Any, level: int) -> Size:
        if node.selection_set is None:
            return Size(-1, 1, 1)
        definition: Any = None
        if isinstance(parent, GraphQLObjectType):
            definition = get_field_def(self.schema, parent, node)
        output = get_named_type(definition.type) if definition else None
        below = self.selections(node.selection_set, output, level, set())
        if node.name.value in INTROSPECTION:
            fields = 1 + below.fields // ITEMS
            return Size(below.nesting, 1, fields, below.conditions)
        is_list = definition and is_list_type(get_nullable_type(definition.type))
        times = ITEMS if is_list and is_meta(parent) else 1
        return Size(
            below.nesting, below.depth + 1, 1 + times * below.fields, below.conditions
        )


def name_of(node: OperationDefinitionNode) -> str | None:
    return node.name.value if node.name else None


def is_meta(kind: Any) -> bool:
    """Return True for a type of the introspection."""
    return str(kind).startswith("__")


def conditions_of(node: Any) -> dict[str, VariableNode]:
    return {
        argument.value.name.value: argument.value
        for directive in node.directives
        for argument in directive.arguments
        if isinstance(argument.value, VariableNode)
    }


class Documents:
    """The documents used last, as many as their lengths allow; thread-safe."""

    def __init__(self, schema: GraphQLSchema, most_characters: int = MOST_KEPT) -> None:
        self.schema, self.characters_left = schema, most_characters
        self.kept: OrderedDict[str, Document] = OrderedDict()
        self.lock = Lock()

    def get(self, text: str) -> Document:
        """Return the document of this text.

        Raises RequestRefusedError or QueryTooComplexError.
        """
        with self.lock:
            if text in self.kept:
                self.kept.move_to_end(text)
                return self.kept[text]
        document = prepare(self.schema, text)
        with self.lock:
            if text not in self.kept:
                self.characters_left -= len(text)
            self.kept[text] = document
            while self.characters_left < 0:
                oldest, _ = self.kept.popitem(last=False)
                self.characters_left += len(oldest)
        return document


def prepare(schema: GraphQLSchema, text: str) -> Document:
    """Parse, measure and validate, in this order: what is too large is not validated."""
    ast = parse_text(text)
    measurement = Measurement(ast, schema)
    if errors := validate(schema, ast, max_errors=MOST_ERRORS):
        raise RequestRefusedError("GRAPHQL_VALIDATION_FAILED", *errors)
    return Document(ast, measurement.conditions)


def parse_text(text: str) -> DocumentNode:
    """Return the syntax tree, or raise RequestRefusedError or QueryTooComplexError."""
    check("characters", len(text), MOST_CHARACTERS)
    try:
        return parse(
            Source(text), max_lexical_tokens=MOST_TOKENS, max_comments=MOST_TOKENS
        )
    except GraphQLError as error:
        if error.message.startswith(TOO_DEEP):
            raise QueryTooComplexError("nesting", MOST_NESTING) from error
        if error.message.startswith(TOO_LONG):
            raise QueryTooComplexError("tokens", MOST_TOKENS) from error
        raise RequestRefusedError("GRAPHQL_PARSE_FAILED", error) from error
