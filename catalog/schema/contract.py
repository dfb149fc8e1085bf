"""The schema as graphql-core executes it, and as it is published."""

from __future__ import annotations

import graphene
from graphql import GraphQLSchema, print_schema

from catalog.schema.connections import Connections
from catalog.schema.mutations import Mutation
from catalog.schema.queries import Query


class RootQuery(Connections, Query):
    """What can be read. A record that does not exist is null."""

    class Meta:
        name = "Query"


schema: GraphQLSchema = graphene.Schema(
    query=RootQuery, mutation=Mutation
).graphql_schema


def operations() -> list[str]:
    """Return the names of the fields of Query and Mutation."""
    roots = (schema.query_type, schema.mutation_type)
    return [name for root in roots if root for name in root.fields]


def sdl() -> str:
    """Return the schema in GraphQL's schema definition language."""
    return print_schema(schema) + "\n"
