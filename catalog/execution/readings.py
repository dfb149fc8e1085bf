"""Queries whose SQL is kept: the ORM takes several times as long to make it as the driver to run it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

import orjson
from django.db import connection
from django.db.models import QuerySet, Value
from django.db.models.expressions import RawSQL

Make = Callable[..., QuerySet[Any]]
Row = tuple[Any, ...]


class Parameter(Value):
    """Stands for a value while a query is compiled, and marks its places in the SQL."""

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", [self]


@dataclass(frozen=True, slots=True)
class Reading:
    """The rows of a query with these values, at most `most`; sorted by the columns `sort`.

    Python sorts text by its code points, in any locale of the database, and only rows that are
    not too many.
    """

    make: Make
    values: dict[str, Any]
    most: int | None = None
    sort: tuple[str, ...] = ()

    def queryset(self) -> QuerySet[Any]:
        return self.make(**self.values)[: self.most]

    def rows(self, columns: tuple[str, ...], most: int) -> list[Row]:
        sql, parameters = compiled(self.make, tuple(self.values), columns)
        if self.most is not None:
            most = min(most, self.most)
        bound = [
            self.values[each.value] if isinstance(each, Parameter) else each
            for each in parameters
        ]
        with connection.cursor() as cursor:
            cursor.execute(f"{sql} LIMIT {most:d}", bound)
            found: list[Row] = cursor.fetchall()
        if self.sort and len(found) < most:
            found.sort(key=itemgetter(*map(columns.index, self.sort)))
        return found


def kept(make: Make, sort: tuple[str, ...] = ()) -> Callable[..., Reading]:
    """Return a function of values that returns the reading of a query.

    The query is that of its first call: it may depend on which values are given, but must not
    look at them, only pass them on to the ORM.
    """
    return lambda most=None, **values: Reading(make, values, most, sort)


@lru_cache(maxsize=1_000)
def compiled(
    make: Make, names: tuple[str, ...], columns: tuple[str, ...]
) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL of a query without its limit, and its parameters."""
    queryset = make(**{name: Parameter(name) for name in names}).values_list(*columns)
    sql, parameters = queryset.query.get_compiler(queryset.db).as_sql()
    return sql, tuple(parameters)


def fetch(
    rows: Reading | QuerySet[Any], columns: tuple[str, ...], most: int
) -> list[Row]:
    """Return these columns of the rows, of as many as `most`."""
    if isinstance(rows, Reading):
        return rows.rows(columns, most)
    return list(rows.prefetch_related(None).values_list(*columns)[:most])


def as_parameter(keys: Collection[int]) -> Any:
    """Return any number of keys as one parameter of `among`."""
    if connection.vendor == "postgresql":
        return list(keys)
    return orjson.dumps(list(keys)).decode()


def among(keys: Any) -> RawSQL:
    """Return the subquery that reads the keys of a parameter."""
    if connection.vendor == "postgresql":
        return RawSQL("SELECT unnest(%s::bigint[])", [keys])
    return RawSQL("SELECT value FROM json_each(%s)", [keys])
