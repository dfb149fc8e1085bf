"""Rows with large binary columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection
from django.db.models import QuerySet


def fetch_binary(rows: QuerySet[Any, tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
    """Return the rows of a values_list() that needs no conversion by Django.

    PostgreSQL sends them in its binary format. In its text format, which Django always asks for,
    binary columns are hexadecimal: twice the bytes and three times the work, on both sides.
    """
    if connection.vendor != "postgresql":
        return rows
    import psycopg

    connection.ensure_connection()
    with (
        connection.wrap_database_errors,
        # Django's own cursors bind parameters on the client, which excludes the binary format.
        psycopg.Cursor(connection.connection) as cursor,
    ):
        cursor.format = psycopg.pq.Format.BINARY
        return cursor.execute(*rows.query.sql_with_params()).fetchall()
