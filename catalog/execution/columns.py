"""Answers rows column by column: one statement for each list, and no Python for a field of a row.

A resolver returns rows as a QuerySet or a Reading. They come with all that is selected below them:
columns, owners (joined), lists and counts (by key, each read once). A selection is a template of
JSON, and each field fills one place of it for all rows. A field with a resolver of its own is
resolved from the model instance of its row, as in graphene-django.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple, cast

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

NUMBERS = {"key": b'"%d"', "number": b"%d"}
OF_COLUMN = {"text", "number", "json", "owner"}  # roles that read a column of the row

Nodes = list[FieldNode]
Table = dict[str, Any]  # the columns of some rows, each a sequence, by their paths
Make = Callable[[Table], Iterable[Any]]  # makes the values of a field for these rows
Texts = dict[Any, bytes]  # JSON by the key of a row


class Level(NamedTuple):
    """Objects that are made of one row: what leads to their columns, and all columns of the row."""

    path: Path
    prefix: str
    columns: dict[str, None]  # in order, each once


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
        _, rows = self.read(kind, field_nodes, result, "pk", path, most)
        if is_list:
            return orjson.Fragment(b"[" + b",".join(rows) + b"]")
        return orjson.Fragment(rows[0]) if rows else None

    # ── Rows ───────────────────────────────────────────────────────────────────────────

    def read(
        self,
        kind: GraphQLObjectType,
        nodes: Nodes,
        rows: Any,
        by: str,
        path: Path,
        most: int,
    ) -> tuple[Sequence[Any], list[bytes]]:
        """Return the column `by` of the rows, and their objects as JSON."""
        columns = dict.fromkeys((by, *getattr(rows, "sort", ())))
        make = self.objects(kind, nodes, Level(path, "", columns))
        found = self.fetch(rows, tuple(columns), most)
        self.rows_left -= len(found)
        if self.rows_left < 0:
            raise ResultTooLargeError(settings.CATALOG_ROW_BUDGET, "rows")
        if not found:
            return [], []
        table = dict(zip(columns, zip(*found, strict=True), strict=True))
        return table[by], make(table)

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
        self, kind: GraphQLObjectType, nodes: Nodes, level: Level
    ) -> Callable[[Table], list[bytes]]:
        """Return what makes the objects of rows; add their columns."""
        parts: list[bytes] = []
        makes: list[Make] = []
        for key, below in self.collect_subfields(kind, nodes).items():
            place, make = self.place(kind, key, below, level)
            parts.append(b'"' + key.encode() + b'":' + place)
            if make:
                makes.append(make)
        template = b"{" + b",".join(parts) + b"}"

        def made(table: Table) -> list[bytes]:
            number = len(next(iter(table.values())))
            self.spend(number * len(template))
            if not makes:
                return [template] * number
            values = [make(table) for make in makes]
            return list(map(template.__mod__, zip(*values, strict=True)))

        return made

    def place(
        self, kind: GraphQLObjectType, key: str, nodes: Nodes, level: Level
    ) -> tuple[bytes, Make | None]:
        """Return the place of a field in the template and what makes its values; add its column."""
        name, prefix = nodes[0].name.value, level.prefix
        role, column = role_of(kind, name)
        if role == "type":
            return b'"' + kind.name.encode() + b'"', None
        if role in OF_COLUMN:
            own = prefix + column.attname
        else:  # the key of the row, without a join
            own = f"{prefix.removesuffix('__')}_id" if prefix else "pk"
        level.columns[own] = None
        if role == "text":
            return b"%b", lambda table: self.texts(table[own])
        if role in NUMBERS:
            return NUMBERS[role], itemgetter(own)
        if role == "json":
            return b"%b", lambda table: map(orjson.dumps, table[own])
        if role == "count":
            return b"%d", partial(self.counts, column, own)
        path = Path(level.path, key, kind.name)
        make: Make = partial(self.resolved, kind, own, nodes, path)
        below: Any = get_named_type(kind.fields[name].type)
        if role == "list":
            make = partial(self.lists, column, below, own, nodes, path)
        if role == "owner":
            inner = Level(path, f"{prefix}{column.name}__", level.columns)
            make = partial(self.owners, own, self.objects(below, nodes, inner))
        return b"%b", make

    def texts(self, column: Sequence[str | None]) -> Iterable[bytes]:
        self.spend(sum(map(len, filter(None, column))))
        return map(orjson.dumps, column)

    def owners(
        self, own: str, make: Callable[[Table], list[bytes]], table: Table
    ) -> Iterable[bytes]:
        """Return the object that each key of a column names, made of one of its rows."""
        keys, below = table[own], own.removesuffix("id")
        places = dict(zip(keys, range(len(keys)), strict=True))
        places.pop(None, None)
        if not places:
            return repeat(b"null", len(keys))
        rows = {
            path: [column[place] for place in places.values()]
            for path, column in table.items()
            if path.startswith(below)
        }
        return self.put(keys, dict(zip(places, make(rows), strict=True)), b"null")

    def lists(
        self,
        reference: Any,
        kind: Any,
        own: str,
        nodes: Nodes,
        path: Path,
        table: Table,
    ) -> Iterable[bytes]:
        """Return the list of the rows that refer to each key."""
        keys, groups = table[own], defaultdict(list)
        rows = Reading(referring(reference), {"keys": as_parameter({*keys} - {None})})
        by, most = reference.attname, self.rows_left + 1
        for key, row in zip(*self.read(kind, nodes, rows, by, path, most), strict=True):
            groups[key].append(row)
        table[f"{own} {reference}"] = [len(groups.get(key, ())) for key in keys]
        lists = {key: b"[" + b",".join(group) + b"]" for key, group in groups.items()}
        return self.put(keys, lists, b"[]")

    def counts(self, reference: Any, own: str, table: Table) -> Iterator[int]:
        """Yield how many rows refer to each key; lists of them have counted before it begins."""
        if (known := table.get(f"{own} {reference}")) is not None:
            yield from known
            return
        keys = table[own]
        rows = Reading(counting(reference), {"keys": as_parameter({*keys} - {None})})
        columns = (reference.attname, "number")
        found: dict[int, int] = dict(self.fetch(rows, columns, len(keys)))
        yield from map(found.get, keys, repeat(0))

    def put(self, keys: Sequence[Any], texts: Texts, default: bytes) -> Iterable[bytes]:
        """Return the text that each key names; it has been counted once."""
        sizes = {key: len(text) for key, text in texts.items()}
        self.spend(sum(map(sizes.get, keys, repeat(0))) - sum(sizes.values()))
        return map(texts.get, keys, repeat(default))

    def resolved(
        self, kind: GraphQLObjectType, own: str, nodes: Nodes, path: Path, table: Table
    ) -> Iterable[bytes]:
        """Return what a resolver makes of the model instance of each key."""
        keys, model = table[own], cast("Any", model_of(kind))
        instances = model._default_manager.in_bulk({*keys} - {None})
        texts = {
            key: orjson.dumps(self.execute_field(kind, instance, nodes, path))
            for key, instance in instances.items()
        }
        return map(texts.get, keys, repeat(b"null"))
