"""Answer an operation without walking it per row: one query and one compiled loop per list level.

A plan is made once per operation (and per value of the variables that steer @skip and
@include). Each list level becomes one `values_list` and one generated function that turns
its rows into the answer's objects. What no plan covers, graphql-core executes; its resolvers
load the rows by levels too, so that both give the same bytes and count the same rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from django.db.models import QuerySet
from graphql import (
    FieldNode,
    GraphQLError,
    GraphQLResolveInfo,
    GraphQLSchema,
    located_error,
)
from graphql.execution.values import get_argument_values

from catalog.execution.budget import RowBudget
from catalog.execution.roots import ROOTS, Root
from catalog.execution.selections import Selections
from catalog.execution.statements import Selection, Statements
from catalog.models import MODELS, Book, Owner, TypeName

Items = Any  # a list of objects, or a dict of lists by owner
Json = dict[str, Any]

COLUMNS: dict[TypeName, dict[str, str]] = {
    "Book": {"id": "pk", "name": "name", "pageCount": "page_count"},
    "Author": {"id": "pk", "firstName": "first_name", "lastName": "last_name"},
    "Category": {"id": "pk", "name": "name", "description": "description"},
}
OWNER_TYPES: dict[str, tuple[Owner, TypeName]] = {
    "author": ("author", "Author"),
    "category": ("category", "Category"),
}
OWNER_OF_TYPE: dict[TypeName, Owner] = {"Author": "author", "Category": "category"}


class NotPlannableError(Exception):
    """A selection that graphql-core has to execute."""


@dataclass(slots=True)
class Below:
    """The books, or the number of books, of the owners that one column of a level names."""

    owner: Owner
    key: int  # the column of the level that holds the owner's key
    level: Level | None  # None: only the number is asked for

    def load(
        self, rows: Sequence[tuple[Any, ...]], weights: list[int], budget: RowBudget
    ) -> Items:
        """Return the lists, or the numbers, by owner."""
        appears: Counter[int] = Counter()
        for row, weight in zip(rows, weights, strict=True):
            appears[row[self.key]] += weight
        appears.pop(None, None)  # type: ignore[call-overload]
        if self.level is None:
            return Book.objects.counts(self.owner, appears)
        keys = Book.objects.all().key_parameter(appears)
        return self.level.load(Selection(self.books, keys), budget, appears)

    def books(self, keys: Any) -> QuerySet[Book]:
        return Book.objects.owned(self.owner, keys).order_by("pk")


@dataclass(slots=True)
class Level:
    """One list of rows of the answer: its columns, what is below it, the loop that builds it."""

    columns: list[str] = field(default_factory=list)
    below: list[Below] = field(default_factory=list)
    statements: Statements = field(default_factory=Statements)
    build: Callable[..., Items] = field(init=False)

    def column(self, path: str) -> int:
        """Return the place of a column, which is added unless it is there."""
        if path not in self.columns:
            self.columns.append(path)
        return self.columns.index(path)

    def load(
        self,
        selection: Selection,
        budget: RowBudget,
        appears: Mapping[int, int] | None = None,
        order: Callable[[Any], Any] | None = None,
        most: int | None = None,
    ) -> Items:
        """Run this level and all below; `appears` says how often each owner's list is answered."""
        rows = self.statements.rows(selection, self.columns, most or budget.enough)
        weights = [appears[row[0]] for row in rows] if appears else [1] * len(rows)
        budget.spend(sum(weights))
        if order is not None:
            rows.sort(key=order)
        return self.build(
            rows, *(below.load(rows, weights, budget) for below in self.below)
        )


class Compiler:
    """Turns the selections of one operation into levels."""

    def __init__(self, selections: Selections) -> None:
        self.selections = selections

    def level(
        self, type_name: TypeName, nodes: list[FieldNode], *first: str, grouped: bool
    ) -> Level:
        """Compile one list of rows; the columns `first` come first, whether answered or not."""
        level = Level()
        for path in first:
            level.column(path)
        shape = self.object(type_name, nodes, level, "")
        if not level.columns:  # every object is the same, but there is one per row
            level.column("pk")
        level.build = compiled(level, shape, grouped=grouped)
        return level

    def object(
        self, type_name: TypeName, nodes: list[FieldNode], level: Level, prefix: str
    ) -> str:
        """Return a dict display of one object; `prefix` leads from the level's row to it."""
        fields = self.selections.below(type_name, nodes)
        # Counts last, so that the books themselves are counted where they are loaded anyway.
        order = sorted(fields, key=lambda key: fields[key][0].name.value == "bookCount")
        values = {
            key: self.value(type_name, fields[key], level, prefix) for key in order
        }
        return "{" + ", ".join(f"{key!r}: {values[key]}" for key in fields) + "}"

    def value(
        self, type_name: TypeName, nodes: list[FieldNode], level: Level, prefix: str
    ) -> str:
        name = nodes[0].name.value
        if name == "__typename":
            return repr(type_name)
        if column := COLUMNS[type_name].get(name):
            place = f"c{level.column(prefix + column)}"
            return f"str({place})" if name == "id" else place
        if name in OWNER_TYPES:
            return self.owner(name, nodes, level, prefix)
        return self.books(OWNER_OF_TYPE[type_name], nodes, level, prefix)

    def owner(
        self, name: str, nodes: list[FieldNode], level: Level, prefix: str
    ) -> str:
        owner, type_name = OWNER_TYPES[name]
        shape = self.object(type_name, nodes, level, f"{prefix}{owner}__")
        if owner == "author":
            return shape
        key = level.column(f"{prefix}{owner}_id")
        return f"(None if c{key} is None else {shape})"

    def books(
        self, owner: Owner, nodes: list[FieldNode], level: Level, prefix: str
    ) -> str:
        key = level.column(f"{prefix.removesuffix('__')}_id" if prefix else "pk")
        if nodes[0].name.value == "bookCount":
            return self.count(owner, key, level)
        books = self.level("Book", nodes, f"{owner}_id", grouped=True)
        level.below.append(Below(owner, key, books))
        return f"(b{len(level.below) - 1}.get(c{key}) or [])"

    def count(self, owner: Owner, key: int, level: Level) -> str:
        for place, below in enumerate(level.below):
            if below.key == key and below.level:
                return f"len(b{place}.get(c{key}) or ())"
        level.below.append(Below(owner, key, None))
        return f"b{len(level.below) - 1}.get(c{key}, 0)"


def compiled(level: Level, shape: str, *, grouped: bool) -> Callable[..., Items]:
    """Return the loop that builds a level's objects; grouped by the first column, or in a row.

    The source holds nothing of the client's but response names, which the grammar limits to
    letters, digits and underscores, and which are quoted.
    """
    tables = "".join(f", b{place}" for place in range(len(level.below)))
    row = "".join(f"c{place}," for place in range(len(level.columns)))
    body = (
        f"    for {row} in rows: groups[c0].append({shape})\n    return groups"
        if grouped
        else f"    return [{shape} for {row} in rows]"
    )
    source = f"def build(rows{tables}):\n    groups = defaultdict(list)\n{body}\n"
    scope: dict[str, Any] = {"defaultdict": defaultdict}
    exec(source, scope)  # noqa: S102 - see the docstring
    build: Callable[..., Items] = scope["build"]
    return build


@dataclass(frozen=True, slots=True)
class RootPlan:
    """One field of Query, ready to run."""

    key: str
    root: Root
    nodes: list[FieldNode]
    level: Level
    order: Callable[[Any], Any] | None

    def run(self, arguments: Mapping[str, Any], budget: RowBudget) -> Any:
        selection = self.root.select(arguments)
        items: list[Json] = []
        if selection is not None:
            one = None if self.root.many else 1
            items = self.level.load(selection, budget, order=self.order, most=one)
        return items if self.root.many else next(iter(items), None)


def rows_of(root: Root, info: GraphQLResolveInfo, arguments: Mapping[str, Any]) -> Any:
    """Answer a field of Query that graphql-core executes."""
    plan = root_plan(Compiler(Selections.of(info)), "", root, info.field_nodes)
    return plan.run(arguments, info.context.budget)


def objects_by_key(
    info: GraphQLResolveInfo,
    type_name: TypeName,
    nodes: list[FieldNode],
    keys: Iterable[int],
) -> dict[int, Json]:
    """Return what the fields of these nodes answer for each key; a row that is gone is left out."""
    level = Compiler(Selections.of(info)).level(type_name, nodes, "pk", grouped=True)
    rows = MODELS[type_name].objects.all()
    selection = Selection(rows.keyed, rows.key_parameter(keys))
    loaded = level.load(selection, info.context.budget)
    return {key: answered for key, [answered] in loaded.items()}


class Plan:
    """An operation that asks only for rows and their relations."""

    def __init__(self, schema: GraphQLSchema, selections: Selections) -> None:
        """Compile the operation, or raise NotPlannableError."""
        self.query = schema.query_type
        compiler = Compiler(selections)
        self.roots: list[RootPlan | str] = []
        for key, nodes in selections.roots().items():
            name = nodes[0].name.value
            if name == "__typename":
                self.roots.append(key)
            elif root := ROOTS.get(name):
                self.roots.append(root_plan(compiler, key, root, nodes))
            else:
                raise NotPlannableError(name)

    def run(
        self, variables: dict[str, Any], budget: RowBudget
    ) -> tuple[Json, list[GraphQLError]]:
        """Return the answer's data and the errors of the fields that are null for it."""
        data: Json = {}
        errors: list[GraphQLError] = []
        for root in self.roots:
            if isinstance(root, str):
                data[root] = "Query"
                continue
            try:
                arguments = self.arguments(root.nodes[0], variables)
                data[root.key] = root.run(arguments, budget)
            except Exception as error:  # noqa: BLE001 - a failed field is null, as in graphql-core
                data[root.key] = None
                errors.append(located_error(error, root.nodes, [root.key]))
        return data, errors

    def arguments(self, node: FieldNode, variables: dict[str, Any]) -> dict[str, Any]:
        if not node.arguments or self.query is None:
            return {}
        definition = self.query.fields[node.name.value]
        return get_argument_values(definition, node, variables)


def root_plan(
    compiler: Compiler, key: str, root: Root, nodes: list[FieldNode]
) -> RootPlan:
    first = ("name", "pk") if root.by_name else ()
    level = compiler.level(root.type_name, nodes, *first, grouped=False)
    order = itemgetter(0, 1) if root.by_name else None
    return RootPlan(key, root, nodes, level, order)
