"""Answers rows column by column: one statement for each list, and no Python for a field of a row.

A resolver returns rows as a QuerySet or a Reading. They come with all that is selected below them:
columns, owners (joined), lists and counts (by key, each read once). A field with a resolver of
its own is resolved from the model instance of its row, as in graphene-django.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any

import orjson
from django.conf import settings
from django.db.models import QuerySet
from graphql import (
    ExecutionContext,
    FieldNode,
    GraphQLObjectType,
    get_named_type,
    is_list_type,
    is_non_null_type,
)
from graphql.pyutils import Path

from catalog.errors import QueryTooComplexError, ResultTooLargeError
from catalog.execution.readings import Reading, Row, as_parameter, fetch
from catalog.execution.roles import counting, model_of, referring, role_of

MOST_STATEMENTS = 1_000
MOST_BYTES = 30_000_000
BYTES_PER_VALUE = 10  # beside its name and its text

Nodes = list[FieldNode]
Table = dict[str, Any]  # the columns of some rows, each a sequence, by their paths
Make = Callable[[Table], Iterable[Any]]  # makes the values of a field for these rows


class Columns(ExecutionContext):
    """Completes rows with everything that is selected below them, within the limits of an answer."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.statements_left, self.bytes_left = MOST_STATEMENTS, MOST_BYTES
        self.rows_left: int = settings.CATALOG_ROW_BUDGET
        self.ends = time.monotonic() + settings.WEB_STATEMENT_TIMEOUT_S

    def complete_value(
        self, return_type: Any, field_nodes: Nodes, info: Any, path: Path, result: Any
    ) -> Any:
        kind = get_named_type(return_type)
        model = model_of(kind) if isinstance(result, Reading | QuerySet) else None
        if (
            model is None
            or getattr(result, "model", model) is not model
            or is_non_null_type(return_type)
        ):
            return super().complete_value(return_type, field_nodes, info, path, result)
        is_list = is_list_type(return_type)
        most = self.rows_left + 1 if is_list else 1
        items = [
            item for _, item in self.read(kind, field_nodes, result, "pk", path, most)
        ]
        return items if is_list else next(iter(items), None)

    # ── Rows ───────────────────────────────────────────────────────────────────────────

    def read(
        self,
        kind: GraphQLObjectType,
        nodes: Nodes,
        rows: Any,
        by: str,
        path: Path,
        most: int,
    ) -> Iterable[tuple[Any, Any]]:
        """Return the object of each row, beside its column `by`."""
        columns = {by: None}  # in order, each once
        make = self.objects(kind, nodes, "", columns, path)
        found = self.fetch(rows, tuple(columns), most)
        self.rows_left -= len(found)
        if self.rows_left < 0:
            raise ResultTooLargeError(settings.CATALOG_ROW_BUDGET, "rows")
        if not found:
            return ()
        table = dict(zip(columns, zip(*found, strict=True), strict=True))
        return zip(table[by], make(table), strict=True)

    def fetch(self, rows: Any, columns: tuple[str, ...], most: int) -> list[Row]:
        """Return columns of rows, or raise QueryTooComplexError or ResultTooLargeError."""
        self.statements_left -= 1
        if self.statements_left < 0:
            raise QueryTooComplexError("statements", MOST_STATEMENTS)
        if time.monotonic() > self.ends:
            raise ResultTooLargeError(settings.WEB_STATEMENT_TIMEOUT_S, "seconds")
        return fetch(rows, columns, most)

    def spend(self, number: int) -> None:
        """Count bytes of the answer, or raise ResultTooLargeError."""
        self.bytes_left -= number
        if self.bytes_left < 0:
            raise ResultTooLargeError(MOST_BYTES, "bytes")

    # ── Objects ────────────────────────────────────────────────────────────────────────

    def objects(
        self,
        kind: GraphQLObjectType,
        nodes: Nodes,
        prefix: str,
        columns: dict[str, None],
        path: Path,
    ) -> Make:
        """Return what makes the objects of rows; add their columns, to which `prefix` leads."""
        selected = self.collect_subfields(kind, nodes)
        makes = {
            key: self.values(kind, below, prefix, columns, Path(path, key, kind.name))
            for key, below in selected.items()
        }
        size = sum(len(key) + BYTES_PER_VALUE for key in makes)
        # Counts come last: lists have counted for them.
        order = sorted(
            makes,
            key=lambda key: role_of(kind, selected[key][0].name.value).name == "count",
        )

        def make(table: Table) -> list[dict[str, Any]]:
            number = len(next(iter(table.values())))
            self.spend(number * size)
            made = {key: makes[key](table) for key in order}
            if not makes:  # @skip and @include have left nothing
                return [{} for _ in range(number)]
            rows = zip(*[made[key] for key in makes], strict=True)
            return [dict(zip(makes, row, strict=True)) for row in rows]

        return make

    def values(
        self,
        kind: GraphQLObjectType,
        nodes: Nodes,
        prefix: str,
        columns: dict[str, None],
        path: Path,
    ) -> Make:
        """Return what makes the values of a field; add the column that it needs."""
        name = nodes[0].name.value
        role, column = role_of(kind, name)
        if role in {"number", "text", "owner"}:
            own = prefix + column.attname
        else:  # the key of the row, without a join
            own = f"{prefix.removesuffix('__')}_id" if prefix else "pk"
        columns[own] = None
        makes: dict[str, Make] = {
            "type": lambda table: repeat(kind.name, len(table[own])),
            "key": lambda table: map(str, table[own]),
            "number": itemgetter(own),
            "text": lambda table: self.texts(table[own]),
            "count": lambda table: self.counts(column, table, own),
            "resolver": lambda table: self.resolved(kind, table[own], nodes, path),
        }
        if role in makes:
            return makes[role]
        below: Any = get_named_type(kind.fields[name].type)
        if role == "list":
            return lambda table: self.lists(column, below, table, own, nodes, path)
        make = self.objects(below, nodes, f"{prefix}{column.name}__", columns, path)
        return lambda table: self.owners(table[own], make, table)

    def texts(self, column: Sequence[str | None]) -> Sequence[str | None]:
        self.spend(sum(map(len, filter(None, column))))
        return column

    def owners(self, keys: Sequence[Any], make: Make, table: Table) -> list[Any]:
        """Return the object that each key names, made of one of its rows."""
        places = dict(zip(keys, range(len(keys)), strict=True))
        places.pop(None, None)
        if not places:
            return [None] * len(keys)
        rows = {
            path: [column[place] for place in places.values()]
            for path, column in table.items()
        }
        return self.put(keys, dict(zip(places, make(rows), strict=True)), None)

    def lists(
        self,
        reference: Any,
        kind: Any,
        table: Table,
        own: str,
        nodes: Nodes,
        path: Path,
    ) -> list[Any]:
        """Return the list of the rows that refer to each key."""
        keys, groups = table[own], defaultdict(list)
        rows = Reading(referring(reference), {"keys": as_parameter({*keys} - {None})})
        by, most = reference.attname, self.rows_left + 1
        for key, item in self.read(kind, nodes, rows, by, path, most):
            groups[key].append(item)
        table[f"{own} {reference}"] = [len(groups.get(key, ())) for key in keys]
        return self.put(keys, groups, [])

    def counts(self, reference: Any, table: Table, own: str) -> list[int]:
        """Return how many rows refer to each key."""
        known: list[int] | None = table.get(f"{own} {reference}")
        if known is not None:
            return known
        keys = table[own]
        rows = Reading(counting(reference), {"keys": as_parameter({*keys} - {None})})
        found: dict[int, int] = dict(
            self.fetch(rows, (reference.attname, "number"), len(keys))
        )
        return [found.get(key, 0) for key in keys]

    def put(
        self, keys: Sequence[Any], items: dict[Any, Any], default: Any
    ) -> list[Any]:
        """Return what each key names. It is serialized once, however often it is named."""
        texts = {key: orjson.dumps(item) for key, item in items.items()}
        named = sum([len(texts[key]) for key in keys if key in texts])
        self.spend(named - sum(map(len, texts.values())))
        fragments = {key: orjson.Fragment(text) for key, text in texts.items()}
        return [fragments.get(key, default) for key in keys]

    def resolved(
        self, kind: GraphQLObjectType, keys: Sequence[Any], nodes: Nodes, path: Path
    ) -> list[Any]:
        """Return what a resolver makes of the model instance of each key."""
        model: Any = model_of(kind)
        instances = model._default_manager.in_bulk({*keys} - {None})  # noqa: SLF001 - documented by Django
        found = {
            key: self.execute_field(kind, instance, nodes, path)
            for key, instance in instances.items()
        }
        return [found.get(key) for key in keys]
