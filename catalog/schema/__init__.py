"""The GraphQL schema, which GRAPHENE["SCHEMA"] names."""

from __future__ import annotations

import graphene

from catalog.execution import roles
from catalog.schema.mutations import Mutation
from catalog.schema.queries import Query

schema = graphene.Schema(query=Query, mutation=Mutation)
roles.check(schema.graphql_schema)
