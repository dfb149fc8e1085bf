"""Execute one GraphQL request: by its plan where there is one, otherwise by graphql-core."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError
from graphql import (
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    execute_sync,
)
from graphql.execution.values import get_variable_values

from catalog.errors import CatalogError
from catalog.execution.budget import check_text
from catalog.execution.context import Context
from catalog.execution.documents import Document, Documents, RequestRefusedError
from catalog.failures import MASKED, NO_OPERATION, Failure, failures

log = structlog.stdlib.get_logger("signpost.graphql")

Json = dict[str, Any]
LONGEST_MESSAGE = 1_000
LONGEST_NAME = 100
# The database is away, or ended a statement that took too long.
OUTAGES = (OperationalError, InterfaceError)


@dataclass(frozen=True, slots=True)
class GraphQLRequest:
    """The parameters of a request, as GraphQL over HTTP names them."""

    query: str
    operation_name: str | None = None
    variables: Json | None = None


@dataclass(slots=True)
class Answer:
    """The answer's body, and whether the operation was executed at all.

    `unavailable`: the database was away or took too long for a part of it.
    """

    body: Json
    executed: bool
    unavailable: bool = False


class MutationNotAllowedError(Exception):
    """A mutation by a method that must not change anything."""


@dataclass(slots=True)
class Trace:
    """What the log tells of an operation."""

    name: str | None = None
    cost: int | None = None
    planned: bool = False
    document: Document | None = None
    operation: OperationDefinitionNode | None = None

    def failure(self, error: Json) -> Failure:
        """Return the operation and the code of an error as clients see it."""
        name, path = None, error.get("path")
        if self.document and self.operation and path:
            name = self.document.root_field(self.operation, path[0])
        return name or NO_OPERATION, error["extensions"]["code"]


class Executor:
    """Answers requests against one schema, from a cache of documents and their plans."""

    def __init__(self, schema: GraphQLSchema, *, plans: bool = True) -> None:
        self.schema, self.plans = schema, plans
        self.documents = Documents(schema)

    def answer(
        self, request: GraphQLRequest, context: Context, *, read_only: bool = False
    ) -> Answer:
        """Return the answer of a request; log its operation, duration and cost.

        Raise MutationNotAllowedError for a mutation in a read-only request.
        """
        started, trace = time.perf_counter(), Trace()
        data, errors, code = self.attempt(request, context, trace, read_only=read_only)
        executed = data is not None
        body: Json = {"data": data} if executed else {}
        if errors:
            told = [public(error, code, context.request_id) for error in errors]
            body = {"errors": told, **body}
            failures.add(trace.failure(error) for error in told)
        log.info(
            "operation",
            operation=(trace.name or "")[:LONGEST_NAME],
            cost=trace.cost,
            planned=trace.planned,
            errors=len(errors),
            ms=round((time.perf_counter() - started) * 1000, 1),
        )
        return Answer(body, executed, unavailable=any(map(is_outage, errors)))

    def attempt(
        self,
        request: GraphQLRequest,
        context: Context,
        trace: Trace,
        *,
        read_only: bool,
    ) -> tuple[Json | None, list[GraphQLError], str]:
        """Return data, errors, and the code of those errors that bring none of their own."""
        try:
            data, errors = self.execute(request, context, trace, read_only=read_only)
        except RequestRefusedError as refusal:
            return None, refusal.errors, refusal.code
        except CatalogError as refusal:
            error = GraphQLError(str(refusal), extensions=refusal.extensions)
            return None, [error], refusal.code
        return data, errors, "BAD_USER_INPUT"

    def execute(
        self,
        request: GraphQLRequest,
        context: Context,
        trace: Trace,
        *,
        read_only: bool,
    ) -> tuple[Json | None, list[GraphQLError]]:
        document = self.documents.get(request.query)
        trace.cost, trace.name = document.cost, request.operation_name
        operation = document.operation(request.operation_name)
        if operation is None:
            raise unresolved(ambiguous(request.operation_name))
        if self.schema.get_root_type(operation.operation) is None:
            raise unresolved("The schema has no subscriptions.")
        trace.document, trace.operation = document, operation
        if operation.name:
            trace.name = operation.name.value
        if read_only and operation.operation is not OperationType.QUERY:
            raise MutationNotAllowedError
        data, errors = self.run(document, operation, request, context, trace)
        if document.has_long_text and operation.operation is OperationType.QUERY:
            check_text(data)
        return data, errors

    def run(
        self,
        document: Document,
        operation: OperationDefinitionNode,
        request: GraphQLRequest,
        context: Context,
        trace: Trace,
    ) -> tuple[Json | None, list[GraphQLError]]:
        """Run the operation's plan, or hand it to graphql-core."""
        if self.plans and (
            planned := run_plan(document, operation, request.variables, context)
        ):
            trace.planned = True
            return planned
        result = execute_sync(
            self.schema,
            document.ast,
            context_value=context,
            variable_values=request.variables,
            operation_name=request.operation_name,
        )
        return result.data, result.errors or []


def run_plan(
    document: Document,
    operation: OperationDefinitionNode,
    given: Json | None,
    context: Context,
) -> tuple[Json, list[GraphQLError]] | None:
    """Return the planned answer, or None when graphql-core has to answer."""
    variables: Json | list[GraphQLError] = {}
    if definitions := operation.variable_definitions:
        variables = get_variable_values(document.schema, definitions, given or {})
    if isinstance(variables, list):
        return None  # graphql-core tells these errors
    plan = document.plan(operation, variables)
    return plan.run(variables, context.budget) if plan else None


def unresolved(message: str) -> RequestRefusedError:
    return RequestRefusedError("OPERATION_RESOLUTION_FAILURE", [GraphQLError(message)])


def ambiguous(name: str | None) -> str:
    """Return why a document does not say what to execute."""
    if name is None:
        return "The document has several operations: name one in operationName."
    return f"The document has no operation named {name[:LONGEST_NAME]!r}."


def cause_of(error: GraphQLError) -> Exception | None:
    """Return what a resolver raised; None for an error of graphql-core's own."""
    cause = error.original_error
    while isinstance(cause, GraphQLError):
        cause = cause.original_error
    return cause


def is_outage(error: GraphQLError) -> bool:
    return isinstance(cause_of(error), OUTAGES)


def public(error: GraphQLError, code: str, request_id: str) -> Json:
    """Return an error as clients see it: with a code, and without what is none of their business."""
    cause = cause_of(error)
    told = dict(error.formatted)
    if cause is None or isinstance(cause, CatalogError):
        told["message"] = error.message[:LONGEST_MESSAGE]
        told["extensions"] = {"code": code, **(error.extensions or {})}
        return told
    log.error("resolver failed", exc_info=cause, path=error.path)
    told["message"] = "Internal server error"
    told["extensions"] = {"code": MASKED, "requestId": request_id}
    return told
