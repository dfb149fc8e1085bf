"""What resolvers return in place of rows: the executor reads them with all that is selected below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol

from graphql import FieldNode, GraphQLField

from catalog.execution.connections import Connections
from catalog.execution.levels import Level, Run, keyed
from catalog.execution.plans import Compiler
from catalog.execution.statements import Selection
from catalog.models import TypeName


class Reading(Protocol):
    """The rows of a field; `compile` returns what `run` needs, which is kept with the document."""

    def compile(
        self, compiler: Compiler, nodes: list[FieldNode], definition: GraphQLField, /
    ) -> Any:
        """Compile what the field selects."""

    def run(self, compiled: Any, run: Run, /, *, is_list: bool) -> Any:
        """Return the field's value."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a selection, sorted by the columns `sort` if there are any."""

    type_name: TypeName
    selection: Selection
    sort: tuple[str, ...] = ()

    def compile(
        self, compiler: Compiler, nodes: list[FieldNode], _definition: GraphQLField
    ) -> Level:
        return compiler.level(self.type_name, nodes, *self.sort, grouped=False)

    def run(self, compiled: Level, run: Run, *, is_list: bool) -> Any:
        sort_key = itemgetter(*range(len(self.sort))) if self.sort else None
        limit = None if is_list else 1
        items = compiled.load(self.selection, run, sort_key=sort_key, limit=limit)
        return items if is_list else next(iter(items), None)


@dataclass(frozen=True, slots=True)
class RowsByKey:
    """The rows of these keys in their order; a key that comes several times counts as often."""

    type_name: TypeName
    keys: Sequence[int]

    def compile(
        self, compiler: Compiler, nodes: list[FieldNode], _definition: GraphQLField
    ) -> Level:
        return compiler.level(self.type_name, nodes, "pk", grouped=True)

    def by_key(self, level: Level, run: Run) -> dict[int, Any]:
        """Return the objects by key; deleted rows are left out."""
        appearances = Counter(self.keys)
        selection, limit = keyed(self.type_name, appearances), len(appearances)
        groups = level.load(selection, run, appearances, limit=limit)
        return {key: item for key, [item] in groups.items()}

    def run(self, compiled: Level, run: Run, *, is_list: bool) -> Any:
        found = self.by_key(compiled, run)
        items = [found[key] for key in self.keys if key in found]
        return items if is_list else next(iter(items), None)


@dataclass(frozen=True, slots=True)
class PageOfRows:
    """The page of all rows that the arguments of a connection select."""

    type_name: TypeName
    arguments: Mapping[str, Any]

    def compile(
        self, compiler: Compiler, nodes: list[FieldNode], definition: GraphQLField
    ) -> Connections:
        return Connections(self.type_name, definition, nodes).compile(compiler)

    def run(self, compiled: Connections, run: Run, *, is_list: bool) -> Any:
        return compiled.run(self.arguments, run)


READINGS = (Rows, RowsByKey, PageOfRows)
