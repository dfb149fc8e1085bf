"""Model instances for the resolvers of added fields, and from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from django.db.models import Model, QuerySet
from graphql import GraphQLResolveInfo, get_named_type

from catalog.errors import ResultTooLargeError
from catalog.execution.limits import Budget
from catalog.execution.plans import INSTANCE, is_planned, is_unsaved, objects_by_key
from catalog.models import MODELS, TypeName


def with_instances(
    resolve: Callable[..., Any], source: Any, info: GraphQLResolveInfo, **arguments: Any
) -> Any:
    """Call a resolver that no plan knows with a model instance, and take instances from it.

    This is a middleware of graphql-core.
    """
    if isinstance(source, dict) and INSTANCE in source:
        if not is_planned(info.parent_type, info.field_name):
            source = source[INSTANCE]
        if source is None:  # deleted meanwhile
            return None
    result = resolve(source, info, **arguments)
    type_name = get_named_type(info.return_type).name
    if type_name not in MODELS:
        return result
    if isinstance(result, Model):
        return next(iter(answered(info, type_name, [result])), None)
    if isinstance(result, Iterable) and not isinstance(result, dict | str):
        rows = read_rows(result, info.context.budget)
        has_instances = any(isinstance(row, Model) for row in rows)
        return answered(info, type_name, rows) if has_instances else rows
    return result


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


def answered(
    info: GraphQLResolveInfo, type_name: TypeName, rows: Sequence[Any]
) -> list[Any]:
    """Return the objects of model instances; deleted rows are left out, other values stay.

    A resolver below gets the instance that was given, with what it was annotated with. An
    instance that is not saved answers its own attributes.
    """
    keys = [row.pk for row in rows if isinstance(row, Model) and row.pk is not None]
    info.context.budget.rows.spend(len(list(filter(is_unsaved, rows))))
    objects = objects_by_key(info, type_name, info.field_nodes, keys)
    return [
        own(objects[row.pk], row) if has_row(row) else row
        for row in rows
        if not has_row(row) or row.pk in objects
    ]


def has_row(row: Any) -> bool:
    """Return True for a model instance that has a row, or had one."""
    return isinstance(row, Model) and not is_unsaved(row)


def own(item: Any, instance: Model) -> Any:
    """Return the object of a row with another instance of it, if it has one."""
    has_instance = isinstance(item, dict) and INSTANCE in item
    return item | {INSTANCE: instance} if has_instance else item
