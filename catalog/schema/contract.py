"""The schema as graphql-core executes it, and as it is published."""

from __future__ import annotations

import graphene
from graphql import GraphQLSchema, print_schema

from catalog.schema.mutations import Mutation
from catalog.schema.queries import Query

schema: GraphQLSchema = graphene.Schema(query=Query, mutation=Mutation).graphql_schema


def sdl() -> str:
    """Return the schema in GraphQL's schema definition language."""
    return print_schema(schema) + "\n"
