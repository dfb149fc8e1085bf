"""SQL beside the ORM: frequent statements, and lookups that the ORM lacks.

To compose one with the ORM takes several times its execution. Times are adapted to the database;
`as_time()` reads one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

import orjson
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, IntegerField, Lookup, Subquery
from django.db.models.sql.compiler import SQLCompiler

# A condition on `ids()`: one parameter, however many there are.
AMONG = {
    "postgresql": "= ANY(%s::bigint[])",
    "sqlite": "IN (SELECT value FROM json_each(%s))",
}
# Keeps the rows that are read from changing; SQLite has one writer.
FOR_UPDATE = {"postgresql": "FOR UPDATE", "sqlite": ""}
PART = 64  # rows that are read at once
# One text, or one for each database.
Statement = str | Mapping[str, str]


def statement(sql: str) -> Mapping[str, str]:
    """Return a statement for each database.

    `id {among}` in it is a condition on `ids()`, `{for_update}` locks what is read.
    """
    return {
        vendor: sql.format(among=among, for_update=FOR_UPDATE[vendor])
        for vendor, among in AMONG.items()
    }


def execute(sql: Statement, *values: object) -> int:
    """Execute a statement; return the number of rows that it changed."""
    with connection.cursor() as cursor:
        cursor.execute(_text(sql), [_parameter(value) for value in values])
        return int(cursor.rowcount)


def fetch(sql: Statement, *values: object) -> list[Any]:
    """Return the rows of a query.

    On PostgreSQL without Django's cursor, which binds parameters itself and so excludes the binary
    format: times are read in Python, and binary columns are hexadecimal. It takes half the time of a
    small query. Rows come in parts, in the same memory: new memory for all would take as long.
    """
    if connection.vendor != "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(_text(sql), [_parameter(value) for value in values])
            return list(cursor.fetchall())
    import psycopg

    connection.ensure_connection()
    with (
        connection.wrap_database_errors,
        psycopg.Cursor(connection.connection) as cursor,
    ):
        return list(cursor.stream(_text(sql), values, binary=True, size=PART))


def fetch_as_one(columns: str, sql: str, *values: object) -> list[list[Any]]:
    """Return the rows of a query on SQLite, read in one step. Times are texts.

    sqlite3 releases the interpreter's lock for each row, and may wait for another thread to
    release it again: that took most of the time of a query beside the thread of the sender.
    """
    as_one = f"SELECT json_group_array(json_array({columns})) FROM ({sql})"  # noqa: S608
    [(text,)] = fetch(as_one, *values)
    rows: list[list[Any]] = orjson.loads(text)
    return rows


def _text(sql: Statement) -> str:
    return sql if isinstance(sql, str) else sql[connection.vendor]


def _parameter(value: Any) -> Any:
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    return value


def ids(pks: Iterable[int]) -> str:
    """Return ids as the parameter of such a condition."""
    if connection.vendor == "sqlite":
        return orjson.dumps(list(pks)).decode()
    # psycopg quotes each element of a list with several regular expressions, for any content.
    return "{" + ",".join(map(str, pks)) + "}"


def as_time(value: Any) -> Any:
    """Return a time of a row, or None. SQLite's have no time zone; of expressions they are texts."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if value is None or value.tzinfo:
        return value
    return value.replace(tzinfo=connection.timezone)


def among(pks: Collection[int]) -> Among:
    """Return the condition `pk IN pks` with one parameter, however many they are.

    With `pk__in`, composing SQL and preparing a parameter for each is a fifth of the work of the
    dispatcher's thread.
    """
    return Among(F("pk"), list(pks))


class Among(Lookup[Any]):
    lookup_name = "among"
    prepare_rhs = False

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, tuple[Any, ...]]:
        column, params = self.process_lhs(compiler, connection)
        return f"{column} {AMONG[connection.vendor]}", (*params, ids(self.rhs))


class CountOf(Subquery):
    """The number of rows of a subquery, which may be limited."""

    output_field = IntegerField()
    template = "(SELECT count(*) FROM (%(subquery)s) counted)"
