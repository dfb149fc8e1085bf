"""The schema that GRAPHENE["SCHEMA"] names: what is executed, and what is published."""

from __future__ import annotations

import graphene

from catalog.schema.connections import Query
from catalog.schema.mutations import Mutation

schema = graphene.Schema(query=Query, mutation=Mutation)


def operations() -> list[str]:
    """Return the names of the fields of Query and Mutation."""
    roots = (schema.graphql_schema.query_type, schema.graphql_schema.mutation_type)
    return [name for root in roots if root for name in root.fields]
