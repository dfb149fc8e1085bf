"""Parse, measure and validate a document once, and keep it for the next request that sends it."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    Source,
    ValidationRule,
    VariableNode,
    get_operation_ast,
    parse,
    specified_rules,
    validate,
    visit,
)
from graphql.language import DirectiveNode, Visitor

from catalog.conf import option
from catalog.errors import QueryTooComplexError
from catalog.execution.limits import INTROSPECTION, LIMITS, check_size
from catalog.execution.plans import NotPlannableError, Plan
from catalog.execution.selections import Selections

MOST_ERRORS = 20
LONG_TEXTS = {"description"}  # fields whose text may be longer than a name
TOO_DEEP = "Syntax Error: Document is nested too deeply"
TOO_MANY = "Syntax Error: Document contains more than"
MOST_PLANS = (
    16  # of one document: one per combination of its @skip and @include variables
)


class RequestRefusedError(Exception):
    """A document that is not executed at all: its errors and their common code."""

    def __init__(self, code: str, errors: list[GraphQLError]) -> None:
        super().__init__(code)
        self.code, self.errors = code, errors


class NoIntrospection(ValidationRule):
    """Refuses `__schema` and `__type`, but not `__typename`."""

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        if node.name.value in INTROSPECTION:
            self.report_error(GraphQLError("Introspection is switched off.", node))


class Facts(Visitor):
    """Collects what the execution of a document depends on."""

    def __init__(self) -> None:
        super().__init__()
        self.conditions: list[str] = []  # variables that decide what is answered
        self.has_long_text = False

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        self.has_long_text |= node.name.value in LONG_TEXTS

    def enter_directive(self, node: DirectiveNode, *_: Any) -> None:
        for argument in node.arguments or ():
            if isinstance(argument.value, VariableNode):
                self.conditions.append(argument.value.name.value)


class Document:
    """A valid document and the plans of its operations."""

    def __init__(self, schema: GraphQLSchema, ast: DocumentNode, cost: int) -> None:
        self.schema, self.ast, self.cost = schema, ast, cost
        self.fragments = {
            node.name.value: node
            for node in ast.definitions
            if isinstance(node, FragmentDefinitionNode)
        }
        facts = Facts()
        visit(ast, facts)
        self.conditions = tuple(dict.fromkeys(facts.conditions))
        self.has_long_text = facts.has_long_text
        self.plans: dict[tuple[Any, ...], Plan | None] = {}

    def operation(self, name: str | None) -> OperationDefinitionNode | None:
        """Return the operation of this name, or the only one; None when there is no such."""
        return get_operation_ast(self.ast, name)

    def root_field(self, operation: OperationDefinitionNode, key: object) -> str | None:
        """Return the name of the operation's field that is answered under this key."""
        waiting, seen = [operation.selection_set], set[FragmentSpreadNode]()
        while waiting:
            for node in waiting.pop().selections:
                if isinstance(node, FieldNode):
                    if (node.alias or node.name).value == key:
                        return node.name.value
                elif isinstance(node, InlineFragmentNode):
                    waiting.append(node.selection_set)
                elif isinstance(node, FragmentSpreadNode) and node not in seen:
                    seen.add(node)
                    waiting.append(self.fragments[node.name.value].selection_set)
        return None

    def plan(
        self, operation: OperationDefinitionNode, variables: dict[str, Any]
    ) -> Plan | None:
        """Return the plan of an operation, or None when graphql-core has to execute it."""
        if operation.operation is not OperationType.QUERY:
            return None
        name = operation.name.value if operation.name else None
        # Another operation's condition may be named like a variable of any type of this one.
        values = [variables.get(each) for each in self.conditions]
        key = (name, *(one if isinstance(one, bool) else None for one in values))
        if key in (plans := self.plans):
            return plans[key]
        plan = self.compiled(operation, variables)
        # A new dict: another thread may be reading the old one.
        kept = plans if len(plans) < MOST_PLANS else {}
        self.plans = {**kept, key: plan}
        return plan

    def compiled(
        self, operation: OperationDefinitionNode, variables: dict[str, Any]
    ) -> Plan | None:
        selections = Selections(self.schema, operation, self.fragments, variables)
        try:
            return Plan(self.schema, selections)
        except (NotPlannableError, GraphQLError):
            return None  # graphql-core executes it, and tells the error if there is one


class Documents:
    """The documents used last, as many as their lengths allow; safe to share by threads."""

    def __init__(self, schema: GraphQLSchema, most_characters: int = 200_000) -> None:
        self.schema, self.most_characters = schema, most_characters
        self.kept: OrderedDict[str, Document] = OrderedDict()
        self.characters = 0
        self.lock = Lock()

    def get(self, text: str) -> Document:
        """Return the document of this text, or raise RequestRefusedError."""
        with self.lock:
            if text in self.kept:
                self.kept.move_to_end(text)
                return self.kept[text]
        document = prepared(self.schema, text)
        with self.lock:
            if text not in self.kept:
                self.characters += len(text)
            self.kept[text] = document
            while self.characters > self.most_characters:
                oldest, _ = self.kept.popitem(last=False)
                self.characters -= len(oldest)
        return document


def parsed(text: str) -> DocumentNode:
    """Return the syntax tree, or raise RequestRefusedError or QueryTooComplexError."""
    if len(text) > LIMITS.characters:
        raise QueryTooComplexError.beyond("characters", LIMITS.characters)
    try:
        return parse(
            Source(text),
            max_lexical_tokens=LIMITS.tokens,
            max_comments=LIMITS.tokens,
        )
    except GraphQLError as error:
        if error.message.startswith(TOO_DEEP):
            raise QueryTooComplexError.beyond("nesting", LIMITS.nesting) from error
        if error.message.startswith(TOO_MANY):
            raise QueryTooComplexError.beyond("tokens", LIMITS.tokens) from error
        raise RequestRefusedError("GRAPHQL_PARSE_FAILED", [error]) from error


def prepared(schema: GraphQLSchema, text: str) -> Document:
    """Parse, measure and validate, in this order: what is too large is not validated."""
    ast = parsed(text)
    cost = check_size(ast, schema)
    rules = [*specified_rules]
    if not option("CATALOG_INTROSPECTION"):
        rules.append(NoIntrospection)
    errors = validate(
        schema,
        ast,
        rules,
        max_errors=MOST_ERRORS,
        hide_suggestions=not option("CATALOG_SUGGESTIONS"),
    )
    if errors:
        raise RequestRefusedError("GRAPHQL_VALIDATION_FAILED", errors)
    return Document(schema, ast, cost)
