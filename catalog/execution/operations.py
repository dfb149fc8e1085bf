"""Execute one GraphQL request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import structlog
from django.db import Error
from graphql import (
    GraphQLError,
    GraphQLSchema,
    OperationType,
    get_operation_ast,
    located_error,
)

from catalog.errors import CatalogError
from catalog.execution.context import Context
from catalog.execution.documents import Documents, RequestRefusedError
from catalog.execution.fields import Execution
from webhooks_core.database.outages import is_outage

log = structlog.stdlib.get_logger("signpost.graphql")

Json = dict[str, Any]
MASKED = "INTERNAL_SERVER_ERROR"
Result = tuple[Json | None, list[GraphQLError]]
LONGEST_MESSAGE = 1_000
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class GraphQLRequest:
    """The parameters of a request, as GraphQL over HTTP names them."""

    query: str
    operation_name: str | None = None
    variables: Json | None = None


@dataclass(slots=True)
class Answer:
    """The body of an answer; the operation may have been refused, or undone by an outage."""

    body: Json
    is_executed: bool
    is_unavailable: bool = False


class MutationNotAllowedError(Exception):
    """A mutation by a method that must not change anything."""


class Executor:
    """Answers requests against one schema, from a cache of documents and their plans."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self.schema = schema
        self.documents = Documents(schema)

    def answer(
        self, request: GraphQLRequest, context: Context, *, read_only: bool = False
    ) -> Answer:
        """Return the answer of a request.

        Raise MutationNotAllowedError for a mutation in a read-only request.
        """
        return Exchange(self, request, context, read_only).answer()


@dataclass(slots=True)
class Exchange:
    """One request and its answer."""

    executor: Executor
    request: GraphQLRequest
    context: Context
    read_only: bool

    def answer(self) -> Answer:
        data, errors, code = self.attempt()
        errors = [self.timed(error) for error in errors]
        is_unavailable = is_undone(data, errors)
        if is_unavailable:
            data = None
        is_executed = data is not None
        body: Json = {"data": data} if is_executed or is_unavailable else {}
        if errors:
            shown = [public(error, code, self.context.request_id) for error in errors]
            body = {"errors": shown, **body}
        return Answer(body, is_executed, is_unavailable)

    def timed(self, error: GraphQLError) -> GraphQLError:
        """Return an error; that of the time limit if the limit has ended a statement."""
        deadline = self.context.deadline
        if deadline.left > 0 or not isinstance(cause_of(error), Error):
            return error
        return located_error(deadline.error(), error.nodes, error.path)

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
        document = self.executor.documents.get(self.request.query)
        operation = get_operation_ast(document.ast, self.request.operation_name)
        if operation is None:
            raise unresolved(ambiguous(self.request.operation_name))
        if self.executor.schema.get_root_type(operation.operation) is None:
            raise unresolved("The schema has no subscriptions.")
        if self.read_only and operation.operation is not OperationType.QUERY:
            raise MutationNotAllowedError
        variables = document.variables(operation, self.request.variables or {})
        plan = document.plan(operation, variables)
        characters = plan.characters
        try:
            return Execution(operation, plan, self.context, variables).run()
        finally:
            if plan.characters > characters:
                self.executor.documents.trim()


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
