"""Execute one GraphQL request: by its plan if there is one, otherwise by graphql-core."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import structlog
from django.db import Error, transaction
from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    MiddlewareManager,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    execute_sync,
    located_error,
)
from graphql.execution.collect_fields import collect_fields

from catalog import persisted
from catalog.conf import option
from catalog.errors import CatalogError
from catalog.execution.completion import Completion
from catalog.execution.context import Context
from catalog.execution.documents import Documents, ParsedDocument, RequestRefusedError
from catalog.execution.instances import with_instances
from catalog.execution.plans import Fields, Fragments
from catalog.operation_counts import (
    MASKED,
    NO_OPERATION,
    Failure,
    durations,
    failures,
)
from catalog.outages import is_outage

log = structlog.stdlib.get_logger("signpost.graphql")

Json = dict[str, Any]
Result = tuple[Json | None, list[GraphQLError]]
LONGEST_MESSAGE = 1_000
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class GraphQLRequest:
    """The parameters of a request, as GraphQL over HTTP names them."""

    query: str | None = None
    operation_name: str | None = None
    variables: Json | None = None
    document_id: str | None = None  # in place of the query
    sha256: str | None = None  # of the query, which it may replace


@dataclass(slots=True)
class Answer:
    """The body of an answer; the operation may have been refused, or undone by an outage.

    `operation` names it for monitoring: by the operator's list, otherwise by its first field.
    """

    body: Json
    is_executed: bool
    is_unavailable: bool = False
    operation: str = NO_OPERATION


class MutationNotAllowedError(Exception):
    """A mutation by a method that must not change anything."""


class UncertainCommitError(Exception):
    """A commit that failed: the change may be stored, and the client must not repeat it."""


class Executor:
    """Answers requests against one schema, from a cache of documents and their plans."""

    def __init__(self, schema: GraphQLSchema, *, plans: bool = True) -> None:
        self.schema, self.plans = schema, plans
        self.documents = Documents(schema)
        self.middleware = MiddlewareManager(with_instances)

    def answer(
        self, request: GraphQLRequest, context: Context, *, read_only: bool = False
    ) -> Answer:
        """Return the answer of a request; log its operation, duration and cost.

        Raise MutationNotAllowedError for a mutation in a read-only request.
        """
        return Execution(self, request, context, read_only=read_only).answer()


class Execution:
    """The execution of one request, and what the log says of it."""

    def __init__(
        self,
        executor: Executor,
        request: GraphQLRequest,
        context: Context,
        *,
        read_only: bool,
    ) -> None:
        self.executor, self.request, self.context = executor, request, context
        self.read_only = read_only
        self.text = ""
        self.name: str | None = None
        self.cost: int | None = None
        self.is_planned = False
        self.document: ParsedDocument | None = None
        self.operation: OperationDefinitionNode | None = None

    def answer(self) -> Answer:
        started = time.perf_counter()
        data, errors, code = self.attempt()
        errors = [self.timed(error) for error in errors]
        label, is_unavailable = self.label(data), is_undone(data, errors)
        if is_unavailable:
            data = None
        is_executed = data is not None
        body: Json = {"data": data} if is_executed or is_unavailable else {}
        if errors:
            shown = [public(error, code, self.context.request_id) for error in errors]
            body = {"errors": shown, **body}
            failures.add(map(self.failure, shown))
        seconds = time.perf_counter() - started
        durations.add(label, seconds)
        self.log(len(errors), round(seconds * 1000, 1))
        return Answer(body, is_executed, is_unavailable, label)

    def label(self, data: Json | None) -> str:
        """Return the name of the operation for monitoring, of which there is a limited number."""
        if self.name and self.document and self.document.is_listed and self.operation:
            return self.name
        return self.field(next(iter(data))) if data else NO_OPERATION

    def field(self, key: object) -> str:
        """Return the name of the field of Query or Mutation with this response name."""
        name = None
        if self.document and self.operation:
            name = self.document.root_field(self.operation, key)
        return name or NO_OPERATION

    def log(self, errors: int, ms: float) -> None:
        """Log the operation; a slow one as a warning, with the hash of its document."""
        fields: Json = {
            "operation": (self.name or "")[:LONGEST_NAME],
            "cost": self.cost,
            "planned": self.is_planned,
            "errors": errors,
            "ms": ms,
        }
        if ms >= option("CATALOG_SLOW_MS"):
            log.warning(
                "slow operation", **fields, document=persisted.sha256(self.text)
            )
        else:
            log.info("operation", **fields)

    def timed(self, error: GraphQLError) -> GraphQLError:
        """Return an error; that of the time limit if the limit has ended a statement."""
        deadline = self.context.deadline
        if deadline.left > 0 or not isinstance(cause_of(error), Error):
            return error
        return located_error(deadline.error(), error.nodes, error.path)

    def failure(self, error: Json) -> Failure:
        """Return the operation and the code of an error as clients see it."""
        path = error.get("path")
        name = self.field(path[0]) if path else NO_OPERATION
        return name, error["extensions"]["code"]

    def attempt(self) -> tuple[Json | None, list[GraphQLError], str]:
        """Return data, errors, and the code of those errors that have none of their own."""
        try:
            return *self.execute(), "BAD_USER_INPUT"
        except RequestRefusedError as refusal:
            return None, refusal.errors, refusal.code
        except CatalogError as refusal:
            error = GraphQLError(str(refusal), extensions=refusal.extensions)
            return None, [error], refusal.code

    def execute(self) -> Result:
        documents = persisted.documents(option("CATALOG_OPERATIONS"))
        if (text := self.request.query) is None:
            text = documents.text(self.request.document_id or self.request.sha256 or "")
        else:
            documents.check(text, self.request.sha256)
        self.text = text
        document = self.executor.documents.get(text, is_listed=documents.are_listed)
        self.cost, self.name = document.cost, self.request.operation_name
        operation = document.operation(self.request.operation_name)
        if operation is None:
            raise unresolved(ambiguous(self.request.operation_name))
        if self.executor.schema.get_root_type(operation.operation) is None:
            raise unresolved("The schema has no subscriptions.")
        self.document, self.operation = document, operation
        if operation.name:
            self.name = operation.name.value
        is_query = operation.operation is OperationType.QUERY
        if self.read_only and not is_query:
            raise MutationNotAllowedError
        variables = document.variables(operation, self.request.variables or {})
        if not is_query:
            return self.run_mutation(document, operation, variables)
        return self.run_query(document, operation, variables)

    def run_query(
        self,
        document: ParsedDocument,
        operation: OperationDefinitionNode,
        variables: Json,
    ) -> Result:
        """Execute a query; several statements read one snapshot."""
        plan, budget = None, self.context.budget
        if self.executor.plans:
            plan = self.executor.documents.plan(document, operation, variables)
        self.is_planned = plan is not None
        if plan is None and not self.reads_rows(document, operation, variables):
            return self.run_graphql(operation, document.fragments)
        try:
            is_single = plan is not None and plan.is_single
            with self.context.deadline.reading(is_single=is_single):
                if plan is None:
                    return self.run_graphql(operation, document.fragments)
                return plan.run(variables, budget)
        except Error as error:  # of the transaction
            fields = self.root_fields(document, operation, variables)
            errors = [located_error(error, fields[key], [key]) for key in fields]
            return dict.fromkeys(fields), errors

    def reads_rows(self, *of_operation: Any) -> bool:
        """Return False for an operation that asks for the schema alone."""
        fields = self.root_fields(*of_operation).values()
        return not all(nodes[0].name.value.startswith("__") for nodes in fields)

    def root_fields(
        self,
        document: ParsedDocument,
        operation: OperationDefinitionNode,
        variables: Json,
    ) -> Fields:
        """Return the fields of Query or Mutation, by response name."""
        schema = self.executor.schema
        root = schema.get_root_type(operation.operation)
        assert root is not None  # noqa: S101 - an operation without one was refused
        return collect_fields(
            schema, document.fragments, variables, root, operation.selection_set
        )

    def run_mutation(
        self,
        document: ParsedDocument,
        operation: OperationDefinitionNode,
        variables: Json,
    ) -> Result:
        """Execute one field after another, each in a transaction of its own."""
        schema, fragments = self.executor.schema, document.fragments
        assert schema.mutation_type is not None  # noqa: S101 - the operation is a mutation
        fields = self.root_fields(document, operation, variables)
        data: Json = {}
        errors: list[GraphQLError] = []
        for key, nodes in fields.items():
            part = OperationDefinitionNode(
                operation=operation.operation,
                variable_definitions=operation.variable_definitions,
                selection_set=SelectionSetNode(selections=tuple(nodes)),
            )
            try:
                if nodes[0].name.value in schema.mutation_type.fields:
                    self.context.authorize_change()
                changed, refusals = self.change(part, fragments)
            except Exception as error:  # noqa: BLE001 - a failed field is null, as in graphql-core
                changed, refusals = None, [located_error(error, nodes, [key])]
            data[key] = changed[key] if changed and not refusals else None
            errors += refusals[:1]
        return data, errors

    def change(
        self, operation: OperationDefinitionNode, fragments: Fragments
    ) -> Result:
        """Execute a mutation; roll it back if anything in its answer fails."""
        is_kept = False
        try:
            with self.context.deadline.changing():
                data, errors = self.run_graphql(operation, fragments)
                is_kept = not errors
                if errors:
                    transaction.set_rollback(True)
        except Error as error:
            if is_kept:
                raise UncertainCommitError from error
            raise
        return data, errors

    def run_graphql(
        self, operation: OperationDefinitionNode, fragments: Fragments
    ) -> Result:
        result = execute_sync(
            self.executor.schema,
            DocumentNode(definitions=(operation, *fragments.values())),
            context_value=self.context,
            variable_values=self.request.variables,
            middleware=self.executor.middleware,
            execution_context_class=Completion,
        )
        return result.data, result.errors or []


def unresolved(message: str) -> RequestRefusedError:
    return RequestRefusedError("OPERATION_RESOLUTION_FAILURE", [GraphQLError(message)])


def ambiguous(name: str | None) -> str:
    """Return why a document does not determine the operation."""
    if name is None:
        return "The document has several operations: name one in operationName."
    return f"The document has no operation named {name[:LONGEST_NAME]!r}."


def is_undone(data: Json | None, errors: list[GraphQLError]) -> bool:
    """Return True if an outage let a request fail as a whole, so that it may be repeated."""
    failed = {error.path[0] for error in errors if error.path}
    return any(is_outage(cause_of(error)) for error in errors) and all(
        value is None and key in failed for key, value in (data or {}).items()
    )


def cause_of(error: GraphQLError) -> Exception | None:
    """Return what a resolver raised; None for an error of graphql-core's own."""
    cause = error.original_error
    while isinstance(cause, GraphQLError):
        cause = cause.original_error
    return cause


def public(error: GraphQLError, code: str, request_id: str) -> Json:
    """Return an error as clients see it: with a code, and without internal details."""
    cause = cause_of(error)
    shown = dict(error.formatted)
    # An error without a path is the request's own, even if Python found it: a number too long.
    if error.path is None or cause is None or isinstance(cause, CatalogError):
        shown["message"] = error.message[:LONGEST_MESSAGE]
        shown["extensions"] = {"code": code, **(error.extensions or {})}
        return shown
    log.error("resolver failed", exc_info=cause, path=error.path)
    shown["message"] = "Internal server error"
    shown["extensions"] = {"code": MASKED, "requestId": request_id}
    return shown
