"""SQL that the ORM compiles once and the database runs with other values of its one parameter."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.models import QuerySet

Build = Callable[[Any], QuerySet[Any]]
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows that one parameter selects; selections of one shape differ in nothing else."""

    build: Build
    parameter: Any = None
    shape: Hashable = None


class Statement:
    """A compiled query and the places of its parameter."""

    def __init__(self, selection: Selection, columns: Sequence[str]) -> None:
        """Compile the query with two parameters; the places that differ are the parameter's."""
        build, parameter = selection.build, selection.parameter
        queryset = build(parameter)
        self.database = queryset.db
        self.sql, self.parameters = compile_query(queryset, columns)
        sql, others = compile_query(build(another(parameter)), columns)
        pairs = zip(self.parameters, others, strict=True)
        self.places = [place for place, (one, two) in enumerate(pairs) if one != two]
        if sql != self.sql or any(
            self.parameters[place] != parameter for place in self.places
        ):
            raise ValueError("the parameter does not reach the database as it is")

    @contextmanager
    def rows(self, parameter: Any, limit: int, *, in_parts: bool) -> Iterator[Any]:
        """Run the statement and yield its cursor; in parts, PostgreSQL keeps what is not read."""
        parameters = list(self.parameters)
        for place in self.places:
            parameters[place] = parameter
        connection = connections[self.database]
        is_pooled = connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS", False)
        in_parts = in_parts and not is_pooled
        with connection.chunked_cursor() if in_parts else connection.cursor() as cursor:
            cursor.execute(f"{self.sql} LIMIT {limit:d}", parameters)
            yield cursor


def compile_query(
    queryset: QuerySet[Any], columns: Sequence[str]
) -> tuple[str, list[Any]]:
    compiler = queryset.values_list(*columns).query.get_compiler(queryset.db)
    sql, parameters = compiler.as_sql()
    if compiler.get_converters([column for column, _, _ in compiler.select]):
        raise ValueError("a column needs a conversion that only the ORM knows")
    return sql, list(parameters)


def another(parameter: Any) -> Any:
    """Return a different parameter of the same type, within the range of the column."""
    match parameter:
        case int():
            return parameter - 1 if parameter else 1
        case str():
            return f"{parameter}?"
        case list():
            return [*parameter, 0]
        case _:
            return parameter
