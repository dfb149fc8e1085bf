"""The merged selection sets of one operation, as the specification's CollectFields gives them."""

from __future__ import annotations

from typing import Any

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLObjectType,
    GraphQLResolveInfo,
    GraphQLSchema,
    OperationDefinitionNode,
)
from graphql.execution.collect_fields import collect_fields, collect_sub_fields

Fields = dict[str, list[FieldNode]]


class Selections:
    """Answers which fields stand below which, in the order of the answer's keys.

    A condition that is null is a GraphQLError. With `lenient` nothing stands below it, for
    callers to whom graphql-core reports the error itself.
    """

    def __init__(
        self,
        schema: GraphQLSchema,
        operation: OperationDefinitionNode,
        fragments: dict[str, FragmentDefinitionNode],
        variables: dict[str, Any],
        *,
        lenient: bool = False,
    ) -> None:
        self.schema, self.operation = schema, operation
        self.fragments, self.variables = fragments, variables
        self.lenient = lenient

    @classmethod
    def of(cls, info: GraphQLResolveInfo) -> Selections:
        """Return those of the operation that graphql-core executes."""
        return cls(
            info.schema,
            info.operation,
            info.fragments,
            info.variable_values,
            lenient=True,
        )

    def roots(self) -> Fields:
        """Return the fields of the operation itself."""
        root = self.schema.get_root_type(self.operation.operation)
        assert root is not None  # noqa: S101 - the document is valid against the schema
        return collect_fields(
            self.schema,
            self.fragments,
            self.variables,
            root,
            self.operation.selection_set,
        )

    def below(self, type_name: str, nodes: list[FieldNode]) -> Fields:
        """Return the fields below merged fields that answer objects of this type."""
        parent = self.object(type_name)
        try:
            return collect_sub_fields(
                self.schema, self.fragments, self.variables, parent, nodes
            )
        except GraphQLError:
            if self.lenient:
                return {}
            raise

    def object(self, type_name: str) -> GraphQLObjectType:
        found = self.schema.get_type(type_name)
        assert isinstance(found, GraphQLObjectType)  # noqa: S101 - names of the schema
        return found
