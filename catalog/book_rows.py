"""Insert books by the thousand, as rows of their columns: without model instances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import orjson
from django.db import connection

from catalog.models import Book
from catalog.text_checks import folded

# name, its folded form, pages, keys of author and category, external id
BookRow = tuple[str, str, int, int, int | None, str | None]

COLUMNS = (
    "name",
    "name_folded",
    "page_count",
    "author_id",
    "category_id",
    "external_id",
)
_TARGET = f"catalog_book ({', '.join(COLUMNS)})"
_COPY = f"COPY {_TARGET} FROM STDIN"
# One statement for many rows: FTS5 writes what it has collected before each statement.
_VALUES = ", ".join(f"json_extract(value, '$[{n}]')" for n in range(len(COLUMNS)))
_INSERT = f"INSERT INTO {_TARGET} SELECT {_VALUES} FROM json_each(%s) ORDER BY key"  # noqa: S608

# The triggers keep the search table; the index of unique external ids has no SQL of its own.
_DERIVED = """
    SELECT type, name, sql FROM sqlite_master
    WHERE tbl_name = 'catalog_book' AND sql IS NOT NULL
    AND (type = 'index' OR name IN (
        'catalog_book_search_insert',
        'catalog_book_search_delete',
        'catalog_book_search_update'
    ))
"""
_REBUILD = "INSERT INTO catalog_book_search (catalog_book_search) VALUES ('rebuild')"


def book_row(
    name: str,
    page_count: int,
    author: int,
    category: int | None,
    external_id: str | None,
) -> BookRow:
    return name, folded(name), page_count, author, category, external_id


def insert(rows: Sequence[BookRow]) -> None:
    """Insert books; their keys ascend in the order of the rows. Raises IntegrityError."""
    # COPY raises its errors where the block ends, outside of Django's cursor.
    with connection.wrap_database_errors, connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(_INSERT, [orjson.dumps(rows).decode()])
            return
        with cursor.copy(_COPY) as copy:
            for row in rows:
                copy.write_row(row)


@contextmanager
def indexes_built_last() -> Iterator[None]:
    """Insert the first books of SQLite without its indexes, and build these at the end.

    Call it in the transaction of the import. That is the only writer, and readers see the catalog
    as it was before. On PostgreSQL readers would wait until the transaction ends.
    """
    if connection.vendor != "sqlite" or Book.objects.exists():
        yield
        return
    with connection.cursor() as cursor:
        derived = cursor.execute(_DERIVED).fetchall()
        for kind, name, _ in derived:
            quoted = name.replace('"', '""')  # of an index of the user's
            cursor.execute(f'DROP {kind} "{quoted}"')
        yield
        # First: with the index of names, it would read the books in another order than by key.
        cursor.execute(_REBUILD)
        for *_, sql in derived:
            cursor.execute(sql)
