"""SQL that the ORM compiles once and the database runs with other values of its one parameter."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
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
        """Compile the query twice: what differs then is the parameter."""
        build, self.database = selection.build, ""
        self.sql, self.parameters = self.compiled(build(selection.parameter), columns)
        varied = build(another(selection.parameter))
        sql, others = self.compiled(varied, columns)
        pairs = zip(self.parameters, others, strict=True)
        self.places = [place for place, (one, two) in enumerate(pairs) if one != two]
        if sql != self.sql or any(
            self.parameters[place] != selection.parameter for place in self.places
        ):
            raise ValueError("the parameter does not reach the database as it is")

    def compiled(
        self, query: QuerySet[Any], columns: Sequence[str]
    ) -> tuple[str, list[Any]]:
        self.database = query.db
        compiler = query.values_list(*columns).query.get_compiler(query.db)
        sql, parameters = compiler.as_sql()
        expressions = [column for column, _, _ in compiler.select]
        if compiler.get_converters(expressions):
            raise ValueError("a column needs a conversion that only the ORM knows")
        return sql, list(parameters)

    def run(self, parameter: Any, limit: int) -> Rows:
        parameters = list(self.parameters)
        for place in self.places:
            parameters[place] = parameter
        with connections[self.database].cursor() as cursor:
            cursor.execute(f"{self.sql} LIMIT {limit:d}", parameters)
            found: Rows = cursor.fetchall()
        return found


class Statements:
    """The statements of one list level, one per shape of its selection."""

    def __init__(self) -> None:
        self.kept: dict[Hashable, Statement] = {}

    def rows(self, selection: Selection, columns: Sequence[str], limit: int) -> Rows:
        statement = self.kept.get(selection.shape)
        if statement is None:
            statement = Statement(selection, columns)
            self.kept[selection.shape] = statement
        return statement.run(selection.parameter, limit)


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
