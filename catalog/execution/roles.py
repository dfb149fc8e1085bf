"""What the fields of a type of rows are: columns, owners, lists, counts, or resolvers of their own."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, cast

from django.core.exceptions import ImproperlyConfigured
from django.db.models import (
    BigIntegerField,
    CharField,
    Count,
    IntegerField,
    Manager,
    Model,
    TextField,
)
from graphene.utils.str_converters import to_camel_case
from graphql import (
    GraphQLObjectType,
    GraphQLSchema,
    get_named_type,
    get_nullable_type,
    is_list_type,
    is_non_null_type,
)

from catalog.execution.readings import Make, among


class Role(NamedTuple):
    """What a field is, and its column: that of the row, or that which refers to the row."""

    # "type", "key", "number" (never null), "json" (a number or null), "text", "owner", "list",
    # "count" or "resolver"
    name: str
    column: Any = None


RESOLVER = Role("resolver")


def resolve_attribute(name: str, default: Any, row: Any, _info: Any) -> Any:
    """Return the attribute of a model instance: the resolver of fields that have none."""
    value = getattr(row, name, default)
    return value.all() if isinstance(value, Manager) else value


@cache
def model_of(kind: Any) -> type[Model] | None:
    """Return the model of a DjangoObjectType whose key is a number; None for another type."""
    options = getattr(getattr(kind, "graphene_type", None), "_meta", None)
    model: Any = getattr(options, "model", None)
    if model is None or not isinstance(model._meta.pk, IntegerField):  # noqa: SLF001 - documented by Django
        return None
    return cast("type[Model]", model)


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
    if column.is_relation:
        return role_of_relation(column, output, name)
    if hasattr(column, "from_db_value"):
        return RESOLVER
    if named.name == "ID" and column.primary_key:
        return Role("key", column)
    if named.name == "String" and isinstance(column, CharField | TextField):
        return Role("text", column)
    is_large = isinstance(column, BigIntegerField)  # which an Int cannot have
    if named.name == "Int" and isinstance(column, IntegerField) and not is_large:
        return Role("json" if column.null else "number", column)
    return RESOLVER


def role_of_relation(column: Any, output: Any, name: str) -> Role:
    named = get_named_type(output)
    reference = column.field if column.one_to_many else column
    if not (column.one_to_many or column.many_to_one) or column.related_model is None:
        return RESOLVER
    if not reference.target_field.primary_key:
        return RESOLVER
    if column.one_to_many and name != names_of(column)[0]:
        return Role("count", reference) if named.name == "Int" else RESOLVER
    if model_of(named) is not column.related_model:
        return RESOLVER
    if column.one_to_many:
        return (
            Role("list", reference)
            if is_list_type(get_nullable_type(output))
            else RESOLVER
        )
    return Role("owner", column)


def check(schema: GraphQLSchema) -> None:
    """Raise ImproperlyConfigured for a field that may fail for one row but must not be null."""
    for kind in schema.type_map.values():
        for name, field in (
            getattr(kind, "fields", {}).items() if model_of(kind) else ()
        ):
            role = role_of(kind, name)
            may_be_null = role.name in {"json", "text", "owner"} and role.column.null
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
