"""Execute one GraphQL request: its document, its variables, its fields, and its errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import structlog
from django.conf import settings
from django.db import Error, transaction
from django.http import HttpRequest
from django.utils.module_loading import import_string
from graphql import (
    ExecutionContext,
    FieldNode,
    GraphQLError,
    GraphQLObjectType,
    GraphQLSchema,
    OperationType,
    get_operation_ast,
    located_error,
)
from graphql.execution.execute import assume_not_awaitable
from graphql.pyutils import Path

from catalog.errors import CatalogError, ForbiddenError, UnauthenticatedError
from catalog.execution.columns import Columns
from catalog.execution.documents import (
    MOST_ERRORS,
    Document,
    Documents,
    RequestRefusedError,
    name_of,
)
from webhooks_core.database.outages import is_outage

log = structlog.stdlib.get_logger("signpost.graphql")

Json = dict[str, Any]
LONGEST_MESSAGE = 1_000
UNRESOLVED = "operationName must name one query or mutation of the document."
MASKED = "INTERNAL_SERVER_ERROR"
NULL_CONDITION = "Argument 'if' of non-null type 'Boolean!' must not be null."


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


class UncertainCommitError(Exception):
    """A commit that failed: the change may be stored, and the client must not repeat it.

    SQLite's is certain: it rolls back what it could not commit, such as on a full disk.
    """


class Execution(Columns):
    """Executes an operation; each field of Mutation in a transaction, which is kept if nothing fails."""

    context_value: HttpRequest
    may_change = False

    def execute_field(
        self,
        parent_type: GraphQLObjectType,
        source: Any,
        field_nodes: list[FieldNode],
        path: Path,
    ) -> Any:
        is_change = parent_type is self.schema.mutation_type
        if not is_change or field_nodes[0].name.value not in parent_type.fields:
            return super().execute_field(parent_type, source, field_nodes, path)
        errors = self.collected_errors.errors
        before, is_kept = len(errors), False
        value: Any = None
        try:
            self.authorize()
            with transaction.atomic():
                value = super().execute_field(parent_type, source, field_nodes, path)
                is_kept = len(errors) == before
                if not is_kept:
                    transaction.set_rollback(True)
        except (CatalogError, Error) as error:
            cause: Exception = error
            if is_kept and not hasattr(error.__cause__, "sqlite_errorcode"):
                cause = UncertainCommitError()
                cause.__cause__ = error
            self.collected_errors.add(
                located_error(cause, field_nodes, path.as_list()), path
            )
        return value if len(errors) == before else None

    def authorize(self) -> None:
        """Raise UnauthenticatedError or ForbiddenError unless this request may change rows."""
        if self.may_change or settings.CATALOG_WRITES == "open":
            return
        authenticate = import_string(settings.CATALOG_TOKEN_AUTHENTICATOR)
        token = bearer(self.context_value)
        user = authenticate(token) if token else None
        if user is None or not user.is_active:
            raise UnauthenticatedError(
                "Changes need a personal token: send Authorization: Bearer <token>."
            )
        if not user.is_staff:
            raise ForbiddenError("Changes need the personal token of a staff user.")
        self.may_change = True


def bearer(request: HttpRequest) -> str | None:
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token else None


class Executor:
    """Answers requests against one schema, from a cache of documents."""

    def __init__(
        self, schema: GraphQLSchema, execution: type[ExecutionContext] = Execution
    ) -> None:
        self.schema, self.execution = schema, execution
        self.documents = Documents(schema)

    def answer(
        self, call: GraphQLRequest, request: HttpRequest, *, read_only: bool = False
    ) -> Answer:
        """Return the answer of a request.

        Raise MutationNotAllowedError for a mutation in a read-only request.
        """
        code, data, is_executed = "BAD_USER_INPUT", None, False
        try:
            data, errors = self.execute(call, request, read_only)
            is_executed = True
        except RequestRefusedError as refusal:
            code, errors = refusal.code, refusal.errors
        except CatalogError as refusal:
            errors = [GraphQLError(str(refusal), extensions=refusal.extensions)]
        body: Json = {}
        if errors:
            request_id = getattr(request, "request_id", "")
            body["errors"] = [public(error, code, request_id) for error in errors]
        is_unavailable = is_undone(data, errors)
        if is_executed:
            body["data"] = None if is_unavailable else data
        return Answer(body, is_executed, is_unavailable)

    def execute(
        self, call: GraphQLRequest, request: HttpRequest, read_only: bool
    ) -> tuple[Json | None, list[GraphQLError]]:
        document = self.documents.get(call.query)
        operation = get_operation_ast(document.ast, call.operation_name)
        if not operation or not self.schema.get_root_type(operation.operation):
            error = GraphQLError(UNRESOLVED)
            raise RequestRefusedError("OPERATION_RESOLUTION_FAILURE", error)
        if read_only and operation.operation is not OperationType.QUERY:
            raise MutationNotAllowedError
        execution = self.build(document, call, request)
        try:
            data: Any = execution.execute_operation(operation, None)
        except GraphQLError as error:  # of a field that must not be null
            execution.collected_errors.add(error, None)
            data = None
        return data, execution.collected_errors.errors

    def build(
        self, document: Document, call: GraphQLRequest, request: HttpRequest
    ) -> ExecutionContext:
        """Return the execution of an operation; raise RequestRefusedError for its variables.

        A null condition is refused here, because graphql-core reports it once for every row.
        """
        built = self.execution.build(
            self.schema,
            document.ast,
            context_value=request,
            raw_variable_values=call.variables,
            operation_name=call.operation_name,
            max_coercion_errors=MOST_ERRORS,
            is_awaitable=assume_not_awaitable,
            hide_suggestions=True,
        )
        if isinstance(built, list):
            raise RequestRefusedError("BAD_USER_INPUT", *built)
        for variable, node in document.conditions[name_of(built.operation)].items():
            if built.variable_values.get(variable) is None:
                error = GraphQLError(NULL_CONDITION, node)
                raise RequestRefusedError("BAD_USER_INPUT", error)
        return built


# ── Errors ─────────────────────────────────────────────────────────────────────────────


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
    shown: Json = dict(error.formatted)
    # An error without a path is the request's own, even if Python found it: a number too long.
    if error.path is None or cause is None or isinstance(cause, CatalogError):
        shown["message"] = error.message[:LONGEST_MESSAGE]
        shown["extensions"] = {"code": code, **(error.extensions or {})}
        return shown
    log.error("resolver failed", exc_info=cause, path=error.path)
    shown["message"] = "Internal server error"
    shown["extensions"] = {"code": MASKED, "requestId": request_id}
    return shown
