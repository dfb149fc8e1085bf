"""Empty the database after a test that commits, at a fraction of the cost of Django's `flush`.

`flush` deletes from every table and emits `post_migrate`, whose receivers compare all content
types and permissions. Here only changed tables are written, and the rows that `migrate` created
return with the keys that they had.
"""

# ruff: noqa: S608 - the names are those of this project's tables
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from django.db import OperationalError, connection, connections, transaction
from django.db.backends.utils import CursorWrapper
from django.test import TransactionTestCase

from config.operations import health

Rows = dict[str, list[tuple[Any, ...]]]


def restorer() -> Callable[[TransactionTestCase], None]:
    """Remember the rows of the migrated databases; return a teardown that restores them."""
    migrated = {}
    for alias in connections:
        with connections[alias].cursor() as cursor:
            migrated[alias] = _rows(cursor, _filled(cursor, alias))

    def restore(test: TransactionTestCase) -> None:
        for alias in test.databases:
            _restore(alias, migrated[alias])

    return restore


def end_other_sessions() -> None:
    """End the sessions of threads that outlive the tests: PostgreSQL drops no database in use."""
    for alias in connections:
        if connections[alias].vendor == "postgresql":
            with connections[alias].cursor() as cursor:
                cursor.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )


def _filled(cursor: CursorWrapper, alias: str) -> list[str]:
    """Name the tables that have rows."""
    tables = connections[alias].introspection.django_table_names(only_existing=True)
    cursor.execute(
        " UNION ALL ".join(
            f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})" for table in tables
        )
    )
    return [table for (table,) in cursor.fetchall()]


def _rows(cursor: CursorWrapper, tables: Iterable[str]) -> Rows:
    rows = {}
    for table in tables:
        cursor.execute(f"SELECT * FROM {table} ORDER BY 1")
        rows[table] = cursor.fetchall()
    return rows


def _restore(alias: str, migrated: Rows) -> None:
    """Write the tables that differ, in any order: foreign keys are checked at the commit."""
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        current = _rows(cursor, migrated)
        changed = [table for table in migrated if migrated[table] != current[table]]
        added = set(_filled(cursor, alias)) - set(migrated)
        for table in [*added, *changed]:
            cursor.execute(f"DELETE FROM {table}")
        for table in changed:
            for row in migrated[table]:
                values = ", ".join(["%s"] * len(row))
                cursor.execute(f"INSERT INTO {table} VALUES ({values})", row)


@contextmanager
def no_database() -> Iterator[None]:
    health.check_migrations.cache_clear()
    away = OperationalError("no route to db.internal")
    with (
        mock.patch.object(connection, "cursor", side_effect=away),
        mock.patch.object(connection, "chunked_cursor", side_effect=away),
    ):
        yield
