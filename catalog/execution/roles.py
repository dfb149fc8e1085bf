"""What the fields of a type of rows are: columns, owners, lists, counts, or resolvers of their own."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, cast

from django.core.exceptions import ImproperlyConfigured
from django.db.models import (
    BigIntegerField,
    CharField,
    Count,
    ForeignKey,
    IntegerField,
    Manager,
    ManyToOneRel,
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
    if model is None or not isinstance(model._meta.pk, IntegerField):
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
    model: Any = model_of(kind)
    roles = (
        role_of_reference(each, name, field.type)
        if type(each) is ManyToOneRel
        else role_of_column(each, get_named_type(field.type))
        for each in model._meta.get_fields()
        if type(each) is ManyToOneRel or to_camel_case(each.name) == name
    )
    return next(filter(None, roles), RESOLVER)


def role_of_reference(other: Any, name: str, output: Any) -> Role | None:
    """Return what a field of this name and type is for the other end of a foreign key."""
    column, named = other.field, get_named_type(output)
    if not column.target_field.primary_key:
        return None
    if name == to_camel_case(f"{other.related_model.__name__.lower()}_count"):
        return Role("count", column) if named.name == "Int" else None
    is_list = is_list_type(get_nullable_type(output))
    if name == to_camel_case(other.get_accessor_name()) and is_list:
        return Role("list", column) if model_of(named) is column.model else None
    return None


def role_of_column(column: Any, output: Any) -> Role | None:
    """Return what a field of this named type is for the column of its name."""
    kind, is_scalar = output.name, not hasattr(column, "from_db_value")
    if isinstance(column, ForeignKey):
        is_same = model_of(output) is column.related_model
        is_key = column.target_field.primary_key
        return Role("owner", column) if is_same and is_key else None
    if kind == "ID" and getattr(column, "primary_key", False):
        return Role("key", column)
    if kind == "String" and isinstance(column, CharField | TextField) and is_scalar:
        return Role("text", column)
    is_large = isinstance(column, BigIntegerField)  # which an Int cannot have
    if (
        kind == "Int"
        and isinstance(column, IntegerField)
        and is_scalar
        and not is_large
    ):
        return Role("json" if column.null else "number", column)
    return None


def check(schema: GraphQLSchema) -> None:
    """Raise ImproperlyConfigured for a field that may fail for one row but must not be null."""
    kinds: Any = filter(model_of, schema.type_map.values())
    for kind in kinds:
        for name, field in kind.fields.items():
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
    rows = reference.model._default_manager
    return lambda keys: rows.filter(**{f"{reference.attname}__in": among(keys)})


@cache
def counting(reference: Any) -> Make:
    """Return the query of how many they are."""
    rows, by = referring(reference), reference.attname
    return lambda keys: rows(keys).order_by().values(by).annotate(number=Count("pk"))
