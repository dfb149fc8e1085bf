"""Values of the answer that graphql-core takes as they are, because a level has built them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphql import ExecutionContext


@dataclass(frozen=True, slots=True)
class Built:
    """A part of the answer, with every field that is selected below it."""

    value: Any


class Completion(ExecutionContext):
    """Completes what resolvers return. A built value costs nothing, however many fields it has."""

    def complete_value(
        self, return_type: Any, field_nodes: Any, info: Any, path: Any, result: Any
    ) -> Any:
        if isinstance(result, Built):
            return result.value
        return super().complete_value(return_type, field_nodes, info, path, result)
