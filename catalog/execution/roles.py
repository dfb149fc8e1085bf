"""What the fields of a type of rows are: columns, owners, lists, counts, or resolvers of their own."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from django.core.exceptions import ImproperlyConfigured
from django.db.models import CharField, Count, IntegerField, Manager, Model, TextField
from graphene.utils.str_converters import to_camel_case
from graphql import (
    GraphQLObjectType,
    GraphQLSchema,
    get_named_type,
    is_list_type,
    is_non_null_type,
)

from catalog.execution.readings import Make, among

# Columns whose values are those of the answer, by the names of scalars.
PLAIN: dict[str, tuple[type[Any], ...]] = {
    "Int": (IntegerField,),
    "String": (CharField, TextField),
}


class Role(NamedTuple):
    """What a field is, and its column: that of the row, or that which refers to the row."""

    name: str  # "type", "key", "number", "text", "owner", "list", "count" or "resolver"
    column: Any = None


RESOLVER = Role("resolver")


def resolve_attribute(name: str, default: Any, row: Any, _info: Any) -> Any:
    """Return the attribute of a model instance: the resolver of fields that have none."""
    value = getattr(row, name, default)
    return value.all() if isinstance(value, Manager) else value


@cache
def model_of(kind: Any) -> type[Model] | None:
    """Return the model of a DjangoObjectType; None for another type."""
    options = getattr(getattr(kind, "graphene_type", None), "_meta", None)
    return getattr(options, "model", None)


@cache
def role_of(kind: GraphQLObjectType, name: str) -> Role:
    """Return what a field of a DjangoObjectType is."""
    if name == "__typename":
        return Role("type")
    field = kind.fields[name]
    if getattr(field.resolve, "func", None) is not resolve_attribute:
        return RESOLVER
    columns: Any = model_of(kind)._meta.get_fields()  # type: ignore[union-attr] # noqa: SLF001 - documented by Django
    for column in columns:
        if name in names_of(column):
            return role_of_column(column, field.type, name)
    return RESOLVER


def names_of(column: Any) -> list[str]:
    """Return the names of the GraphQL fields that a column, or the other end of one, can have."""
    if column.one_to_many:
        count = f"{column.related_model.__name__.lower()}_count"
        names = [column.get_accessor_name(), count]
    else:
        names = [column.name]
    return [to_camel_case(name) for name in names]


def role_of_column(column: Any, output: Any, name: str) -> Role:
    named = get_named_type(output)
    if column.one_to_many and named.name == "Int" and name != names_of(column)[0]:
        return Role("count", column.field)
    if column.is_relation:
        is_same = model_of(named) is column.related_model
        if column.one_to_many and is_same and is_list_type(output):
            return Role("list", column.field)
        return Role("owner", column) if column.many_to_one and is_same else RESOLVER
    if column.primary_key and named.name == "ID":
        return Role("key", column)
    is_plain = isinstance(column, PLAIN.get(named.name, ()))
    if not is_plain or hasattr(column, "from_db_value"):
        return RESOLVER
    return Role("text" if named.name == "String" else "number", column)


def check(schema: GraphQLSchema) -> None:
    """Raise ImproperlyConfigured for a field that may fail for one row but must not be null."""
    for kind in schema.type_map.values():
        for name, field in (
            getattr(kind, "fields", {}).items() if model_of(kind) else ()
        ):
            role = role_of(kind, name)
            may_be_null = getattr(role.column, "null", False) and role.name in {
                "number",
                "text",
                "owner",
            }
            if is_non_null_type(field.type) and (role is RESOLVER or may_be_null):
                raise ImproperlyConfigured(
                    f"{kind.name}.{name} must be nullable: its resolver may fail for a row."
                )


# ── Queries by key ─────────────────────────────────────────────────────────────────────


@cache
def referring(reference: Any) -> Make:
    """Return the query of the rows that refer to keys."""
    rows = reference.model._default_manager  # noqa: SLF001 - documented by Django
    return lambda keys: rows.filter(**{f"{reference.attname}__in": among(keys)})


@cache
def counting(reference: Any) -> Make:
    """Return the query of how many they are."""
    rows, by = referring(reference), reference.attname
    return lambda keys: rows(keys).order_by().values(by).annotate(number=Count("pk"))
