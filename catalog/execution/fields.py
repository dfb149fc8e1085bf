"""Execute the fields of an operation: graphql-core, which reads rows by compiled levels.

A resolver returns a Reading, and a level builds its value with everything that is selected
below, so that no Python runs for the fields of a row. Only a field that no level knows is resolved
from the model instance of its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any, TypeVar

from django.db import Error, transaction
from django.db.models import Model, QuerySet
from graphql import (
    ExecutionContext,
    FieldNode,
    GraphQLError,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLResolveInfo,
    MiddlewareManager,
    default_field_resolver,
    default_type_resolver,
    get_named_type,
    is_list_type,
    located_error,
)
from graphql.execution.execute import CollectedErrors, assume_not_awaitable
from graphql.pyutils import Path

from catalog.errors import ResultTooLargeError
from catalog.execution.context import Context
from catalog.execution.levels import Json, Level, Run
from catalog.execution.limits import Budget
from catalog.execution.plans import (
    INSTANCE,
    Compiler,
    Fields,
    Plan,
    is_planned,
    is_unsaved,
)
from catalog.execution.readings import READINGS, Reading, RowsByKey
from catalog.models import MODELS

Resolver = TypeVar("Resolver", bound=Callable[..., Any])
PLANNED = "is_planned"


class UncertainCommitError(Exception):
    """A commit that failed: the change may be stored, and the client must not repeat it.

    SQLite's is certain: it rolls back what it could not commit, such as on a full disk.
    """


def planned(resolver: Resolver) -> Resolver:
    """Mark a resolver that returns a Reading and reads nothing itself."""
    setattr(resolver, PLANNED, True)
    return resolver


def with_instance(
    resolve: Callable[..., Any], source: Any, info: GraphQLResolveInfo, **arguments: Any
) -> Any:
    """Call a resolver that no level knows with a model instance; a middleware of graphql-core."""
    if isinstance(source, dict) and INSTANCE in source:
        if not is_planned(info.parent_type, info.field_name):
            source = source[INSTANCE]
        if source is None:  # deleted meanwhile
            return None
    return resolve(source, info, **arguments)


MIDDLEWARE = MiddlewareManager(with_instance)


class Execution(ExecutionContext):
    """The execution of one operation."""

    context_value: Context

    def __init__(
        self, operation: Any, plan: Plan, context: Context, variables: Json
    ) -> None:
        resolvers = (
            default_field_resolver,
            default_type_resolver,
            default_field_resolver,
        )
        call = None, context, operation, variables
        state = CollectedErrors(), MIDDLEWARE, assume_not_awaitable
        super().__init__(plan.schema, plan.fragments, *call, *resolvers, *state)
        self.plan = plan
        self.fields: Fields = {}  # of Query or Mutation, by response name
        self.snapshot, self.is_open = ExitStack(), False
        self.level_run = Run(variables, context.budget)

    def run(self) -> tuple[Json | None, list[GraphQLError]]:
        """Return the data and the errors of the answer."""
        try:
            data: Any = self.execute_operation(self.operation, None)
        except GraphQLError as error:  # of a field that must not be null
            self.collected_errors.add(error, None)
            data = None
        return data, self.collected_errors.errors

    # ── Transactions ───────────────────────────────────────────────────────────────────

    def execute_fields(
        self,
        parent_type: GraphQLObjectType,
        source_value: Any,
        path: Path | None,
        fields: Fields,
    ) -> Any:
        """Execute the fields; those of Query read one snapshot, which begins when it is needed."""
        if path is not None:
            return super().execute_fields(parent_type, source_value, path, fields)
        self.fields = fields
        try:
            with self.snapshot:
                if any(not is_lazy(parent_type, nodes) for nodes in fields.values()):
                    self.open()
                return super().execute_fields(parent_type, source_value, path, fields)
        except Error as error:  # of the transaction
            for key, nodes in fields.items():
                self.collected_errors.add(
                    located_error(error, nodes, [key]), Path(None, key, None)
                )
            return dict.fromkeys(fields)

    @property
    def has_one_field(self) -> bool:
        """True if one field of Query reads rows at most."""
        names = [nodes[0].name.value for nodes in self.fields.values()]
        return sum(not name.startswith("__") for name in names) == 1

    def open(self, *, is_single: bool = False) -> None:
        """Begin the snapshot of a query."""
        if not self.is_open:
            deadline = self.context_value.deadline
            self.snapshot.enter_context(deadline.reading(is_single=is_single))
        self.is_open = True

    def execute_fields_serially(
        self,
        parent_type: GraphQLObjectType,
        source_value: Any,
        path: Path | None,
        fields: Fields,
    ) -> Any:
        """Execute the fields of Mutation, each in a transaction of its own."""
        self.fields, self.is_open = fields, True
        data: Json = {}
        refusals: list[GraphQLError] = []
        for key, nodes in fields.items():
            self.collected_errors = CollectedErrors()
            try:
                if nodes[0].name.value in parent_type.fields:
                    self.context_value.authorize_change()
                data[key] = self.change(
                    parent_type, nodes, Path(None, key, parent_type.name)
                )
            except Exception as error:  # noqa: BLE001 - a failed field is null, as in graphql-core
                self.collected_errors.add(located_error(error, nodes, [key]), None)
            if self.collected_errors.errors:
                data[key] = None
                refusals.append(min(self.collected_errors.errors, key=place))
        self.collected_errors = CollectedErrors()
        self.collected_errors.errors.extend(refusals)
        return data

    def change(
        self, parent_type: GraphQLObjectType, nodes: list[FieldNode], path: Path
    ) -> Any:
        """Execute a field of Mutation; roll it back if anything in its answer fails."""
        is_kept = False
        try:
            with self.context_value.deadline.changing():
                value = self.execute_field(parent_type, None, nodes, path)
                is_kept = not self.collected_errors.errors
                if not is_kept:
                    transaction.set_rollback(True)
        except Error as error:
            if is_kept and not hasattr(error.__cause__, "sqlite_errorcode"):
                raise UncertainCommitError from error
            raise
        return value

    # ── Rows ───────────────────────────────────────────────────────────────────────────

    def complete_value(
        self, return_type: Any, field_nodes: Any, info: Any, path: Path, result: Any
    ) -> Any:
        """Complete what a resolver returns; a level's value is complete unless resolvers see it."""
        if isinstance(path.key, str) and not isinstance(return_type, GraphQLNonNull):
            if isinstance(result, READINGS):
                level, result = self.read(result, return_type, info)
                if result is None or not level.uses_instances:
                    return result
            elif get_named_type(return_type).name in MODELS:
                result = self.with_objects(result, return_type, info)
        return super().complete_value(return_type, field_nodes, info, path, result)

    def compiled(self, reading: Reading, info: GraphQLResolveInfo) -> Any:
        """Return what a field selects, compiled once."""
        key = path_of(info)
        if (level := self.plan.levels.get(key)) is None:
            compiler = Compiler(self.schema, self.fragments, self.variable_values)
            definition = info.parent_type.fields[info.field_name]
            level = reading.compile(compiler, info.field_nodes, definition)
            level.uses_instances = compiler.uses_instances
            self.plan.levels[key] = level
            self.plan.characters += compiler.characters
        return level

    def read(
        self, reading: Reading, return_type: Any, info: GraphQLResolveInfo
    ) -> tuple[Any, Any]:
        """Return what a field selects and its value."""
        level = self.compiled(reading, info)
        self.open(is_single=level.is_single and self.has_one_field)
        is_list = is_list_type(return_type)
        return level, reading.run(level, self.level_run, is_list=is_list)

    def with_objects(
        self, result: Any, return_type: Any, info: GraphQLResolveInfo
    ) -> Any:
        """Return the objects of the model instances that a resolver returned."""
        if isinstance(result, Model):
            return next(iter(self.objects([result], return_type, info)), None)
        if isinstance(result, Iterable) and not isinstance(result, dict | str):
            rows = read_rows(result, self.context_value.budget)
            has_instances = any(isinstance(row, Model) for row in rows)
            return self.objects(rows, return_type, info) if has_instances else rows
        return result

    def objects(
        self, rows: Sequence[Any], return_type: Any, info: GraphQLResolveInfo
    ) -> list[Any]:
        """Return the objects of model instances; deleted rows are left out, other values stay.

        A resolver below gets the instance that was given, with what it was annotated with. An
        instance that is not saved answers its own attributes.
        """
        keys = [row.pk for row in rows if isinstance(row, Model) and row.pk is not None]
        run = self.level_run
        run.budget.rows.spend(len(list(filter(is_unsaved, rows))))
        reading = RowsByKey(get_named_type(return_type).name, keys)
        level: Level = self.compiled(reading, info)
        objects = reading.by_key(level, run)
        return [
            own(objects[row.pk], row) if has_row(row) else row
            for row in rows
            if not has_row(row) or row.pk in objects
        ]


def path_of(info: GraphQLResolveInfo) -> Any:
    """Return what determines the selection of a field: the response names that lead to it."""
    path: Path | None = info.path
    names = []
    while path is not None:
        if isinstance(path.key, str):
            names.append((path.typename, path.key))
        path = path.prev
    return tuple(names)


def is_lazy(root: GraphQLObjectType, nodes: list[FieldNode]) -> bool:
    """Return True for a field of Query whose resolver does not use the database."""
    name = nodes[0].name.value
    return name.startswith("__") or hasattr(root.fields[name].resolve, PLANNED)


def place(error: GraphQLError) -> Any:
    return error.locations or [], error.path or [], error.message


def read_rows(rows: Iterable[Any], budget: Budget) -> Sequence[Any]:
    """Return the rows of a list or an iterator; one too many is refused, and no more are read."""
    if isinstance(rows, Sequence):
        return rows
    enough = budget.enough
    if isinstance(rows, QuerySet):
        rows = rows[:enough]
    read = list(islice(rows, enough))
    if len(read) == enough:
        raise ResultTooLargeError(budget.rows.limit, budget.rows.unit)
    return read


def has_row(row: Any) -> bool:
    """Return True for a model instance that has a row, or had one."""
    return isinstance(row, Model) and not is_unsaved(row)


def own(item: Any, instance: Model) -> Any:
    """Return the object of a row with another instance of it, if it has one."""
    has_instance = isinstance(item, dict) and INSTANCE in item
    return item | {INSTANCE: instance} if has_instance else item
