"""Parse, measure and validate a document once, and keep it for later requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock
from typing import Any

from django.conf import settings
from graphql import (
    DocumentNode,
    FieldNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionNode,
    Source,
    ValidationRule,
    VariableNode,
    parse,
    specified_rules,
    validate,
)
from graphql.execution.values import get_variable_values

from catalog.errors import QueryTooComplexError
from catalog.execution.limits import INTROSPECTION, LIMITS, Measurement, check
from catalog.execution.plans import Fragments, Plan

MOST_ERRORS = 20
NULL_CONDITION = "Argument 'if' of non-null type 'Boolean!' must not be null."
TOO_DEEP = "Syntax Error: Document is nested too deeply"
TOO_MANY = "Syntax Error: Document contains more than"
MOST_PLANS = 16  # of one document: one per value of its @skip and @include variables


class RequestRefusedError(Exception):
    """A document that is not executed: its errors and their common code."""

    def __init__(self, code: str, errors: list[GraphQLError]) -> None:
        super().__init__(errors[0].message)
        self.code, self.errors = code, errors


class NoIntrospection(ValidationRule):
    """Refuses `__schema` and `__type`, but not `__typename`."""

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        if node.name.value in INTROSPECTION:
            self.report_error(GraphQLError("Introspection is switched off.", node))


class ParsedDocument:
    """A valid document and the plans of its operations."""

    def __init__(
        self, schema: GraphQLSchema, ast: DocumentNode, measurement: Measurement
    ) -> None:
        self.schema, self.ast, self.cost = schema, ast, measurement.cost
        self.fragments = measurement.fragments
        self.plans: dict[tuple[Any, ...], Plan] = {}
        self._conditions: dict[str | None, dict[str, VariableNode]] = {}

    def variables(
        self, operation: OperationDefinitionNode, given: dict[str, Any]
    ) -> dict[str, Any]:
        """Return an operation's coerced variables, or raise RequestRefusedError.

        Also raises QueryTooComplexError. Coercion stops at the first errors and suggests no names: an error costs as much as its
        value is long, and there can be one per key. A null condition is refused here, because
        graphql-core reports it once for every row.
        """
        check_nesting(given)
        definitions = operation.variable_definitions or ()
        variables = get_variable_values(
            self.schema,
            definitions,
            given,
            max_errors=MOST_ERRORS,
            hide_suggestions=True,
        )
        if isinstance(variables, list):
            raise RequestRefusedError("BAD_USER_INPUT", variables)
        for name, node in self.conditions(operation).items():
            if variables.get(name) is None:
                error = GraphQLError(NULL_CONDITION, node)
                raise RequestRefusedError("BAD_USER_INPUT", [error])
        return variables

    def conditions(self, operation: OperationDefinitionNode) -> dict[str, VariableNode]:
        """Return the variables of the operation's @skip and @include, with a place of each."""
        name = operation.name.value if operation.name else None
        if name not in self._conditions:
            nodes = selected_nodes(operation, self.fragments)
            self._conditions[name] = {
                argument.value.name.value: argument.value
                for node in nodes
                for directive in node.directives
                for argument in directive.arguments
                if isinstance(argument.value, VariableNode)
            }
        return self._conditions[name]

    @property
    def plan_characters(self) -> int:
        """Return how many characters of a document take as much memory as the plans."""
        return sum(plan.characters for plan in self.plans.values())

    def plan(
        self, operation: OperationDefinitionNode, variables: dict[str, Any]
    ) -> Plan:
        """Return the plan of an operation and of the values of its conditions."""
        name = operation.name.value if operation.name else None
        conditions = (variables[each] for each in self.conditions(operation))
        key = (name, *conditions)
        if (plan := self.plans.get(key)) is None:
            plan = Plan(self.schema, self.fragments)
            # A new dict, because another thread may be reading the old one.
            kept = self.plans if len(self.plans) < MOST_PLANS else {}
            self.plans = {**kept, key: plan}
        return plan


def check_nesting(value: Any) -> None:
    """Raise QueryTooComplexError for a value that is nested too deeply to be read by recursion."""
    level, depth = [value], 0
    while level:
        depth += 1
        check("nesting_of_variables", depth)
        level = [
            part
            for each in level
            for part in (each.values() if isinstance(each, dict) else each)
            if isinstance(part, dict | list)
        ]


def selected_nodes(
    operation: OperationDefinitionNode, fragments: Fragments
) -> Iterator[SelectionNode]:
    """Yield every selection of an operation; each fragment once, however often it is spread."""
    remaining, spread = [operation.selection_set], set[str]()
    while remaining:
        for node in remaining.pop().selections:
            yield node
            if isinstance(node, FragmentSpreadNode):
                name = node.name.value
                if name not in spread:
                    spread.add(name)
                    remaining.append(fragments[name].selection_set)
            elif (
                isinstance(node, FieldNode | InlineFragmentNode) and node.selection_set
            ):
                remaining.append(node.selection_set)


class Documents:
    """The documents used last, as many as their lengths and plans allow; thread-safe."""

    def __init__(self, schema: GraphQLSchema, most_characters: int = 200_000) -> None:
        self.schema, self.most_characters = schema, most_characters
        self.kept: OrderedDict[str, ParsedDocument] = OrderedDict()
        self.lock = Lock()

    @property
    def characters(self) -> int:
        return sum(
            len(text) + document.plan_characters for text, document in self.kept.items()
        )

    def get(self, text: str) -> ParsedDocument:
        """Return the document of this text, or raise RequestRefusedError."""
        with self.lock:
            if text in self.kept:
                self.kept.move_to_end(text)
                return self.kept[text]
        document = prepare(self.schema, text)
        with self.lock:
            self.kept[text] = document
        self.trim()
        return document

    def trim(self) -> None:
        """Drop the documents that were not used for longest."""
        with self.lock:
            characters = self.characters
            while characters > self.most_characters:
                text, document = self.kept.popitem(last=False)
                characters -= len(text) + document.plan_characters


def prepare(schema: GraphQLSchema, text: str) -> ParsedDocument:
    """Parse, measure and validate, in this order: what is too large is not validated."""
    ast = parse_text(text)
    measurement = Measurement(ast, schema)
    rules = [*specified_rules]
    if not settings.CATALOG_INTROSPECTION:
        rules.append(NoIntrospection)
    is_silent = not settings.CATALOG_SUGGESTIONS
    errors = validate(
        schema, ast, rules, max_errors=MOST_ERRORS, hide_suggestions=is_silent
    )
    if is_silent:
        # graphql-core still suggests a selection below a field of an object type.
        for error in errors:
            error.message = error.message.partition(" Did you mean ")[0]
    if errors:
        raise RequestRefusedError("GRAPHQL_VALIDATION_FAILED", errors)
    return ParsedDocument(schema, ast, measurement)


def parse_text(text: str) -> DocumentNode:
    """Return the syntax tree, or raise RequestRefusedError or QueryTooComplexError."""
    if len(text) > LIMITS.characters:
        raise QueryTooComplexError("characters", LIMITS.characters)
    try:
        return parse(
            Source(text), max_lexical_tokens=LIMITS.tokens, max_comments=LIMITS.tokens
        )
    except GraphQLError as error:
        if error.message.startswith(TOO_DEEP):
            raise QueryTooComplexError("nesting", LIMITS.nesting) from error
        if error.message.startswith(TOO_MANY):
            raise QueryTooComplexError("tokens", LIMITS.tokens) from error
        raise RequestRefusedError("GRAPHQL_PARSE_FAILED", [error]) from error
