"""The schema that GRAPHENE["SCHEMA"] names: what is executed, and what is published."""

from __future__ import annotations

from typing import Any

import graphene
from django.core.exceptions import ImproperlyConfigured
from graphene.types.resolver import get_default_resolver
from graphql import GraphQLObjectType, GraphQLSchema, get_named_type, is_abstract_type

from catalog.execution.connections import CONNECTION_FIELDS
from catalog.execution.plans import has_resolver, is_planned
from catalog.models import MODELS
from catalog.schema.mutations import Mutation
from catalog.schema.queries import Query


def check_resolvers(schema: GraphQLSchema) -> None:
    """Raise ImproperlyConfigured for a field that nothing answers."""
    check_rows(schema)
    check_connections(schema)
    for root in filter(None, (schema.query_type, schema.mutation_type)):
        check_root(root)
    check_abstract(schema)


def check_rows(schema: GraphQLSchema) -> None:
    for type_name, model in MODELS.items():
        row = schema.type_map[type_name]
        for name, field in row.fields.items():  # type: ignore[attr-defined]
            if has_resolver(field) or is_planned(row, name):  # type: ignore[arg-type]
                continue
            attribute = field.resolve.args[0]
            if not hasattr(model, attribute):
                raise ImproperlyConfigured(
                    f"{type_name}.{name} cannot be answered: declare resolve_{attribute}, "
                    f"or give the model the attribute {attribute}."
                )


def check_connections(schema: GraphQLSchema) -> None:
    for type_name in MODELS:
        connection = schema.type_map.get(f"{type_name}Connection")
        for name in getattr(connection, "fields", {}).keys() - CONNECTION_FIELDS:
            raise ImproperlyConfigured(
                f"{type_name}Connection.{name} cannot be answered: "
                "give the field to Query, to Author or to Category."
            )


def check_root(root: GraphQLObjectType) -> None:
    for name, field in root.fields.items():
        if getattr(field.resolve, "func", None) is get_default_resolver():
            raise ImproperlyConfigured(
                f"{root.name}.{name} cannot be answered: declare a resolver."
            )


def check_abstract(schema: GraphQLSchema) -> None:
    for output in schema.type_map.values():
        for name, field in getattr(output, "fields", {}).items():
            abstract = get_named_type(field.type)
            if is_abstract_type(abstract) and has_rows(schema, abstract):
                raise ImproperlyConfigured(
                    f"{output.name}.{name} cannot be answered: {abstract.name} is a union or "
                    "an interface of rows. Add a field for each of its types."
                )


def has_rows(schema: GraphQLSchema, abstract: Any) -> bool:
    """Return True if a union or an interface has a type whose rows a level reads."""
    return any(each.name in MODELS for each in schema.get_possible_types(abstract))


schema = graphene.Schema(query=Query, mutation=Mutation)
check_resolvers(schema.graphql_schema)
