from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from catalog import book_rows, bulk
from catalog.models import Book

pytestmark = pytest.mark.django_db


def import_lines(folder, lines):
    file = folder / "books.csv"
    file.write_text(",".join(bulk.FIELDS[:5]) + "\n" + lines)
    bulk.load(file)


def test_every_column_of_a_book_is_inserted():
    columns = [field.column for field in Book._meta.concrete_fields]
    assert ["id", *book_rows.COLUMNS] == columns


def parts_of_sqlite():
    """Return the tables, indexes and triggers; check that they hold the rows of the tables."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO catalog_book_search (catalog_book_search, rank) "
            "VALUES ('integrity-check', 1)"
        )
        assert cursor.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return set(cursor.execute("SELECT type, name, sql FROM sqlite_master"))


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL keeps them")
def test_indexes_that_are_built_last_are_those_of_before(tmp_path):
    before = parts_of_sqlite()
    first_books = "Emma,1,Jane,Austen,Novel\nWaverley,1,Walter,Scott,\n"
    import_lines(tmp_path, first_books)
    assert parts_of_sqlite() == before
    with CaptureQueriesContext(connection) as second:
        import_lines(tmp_path, "Emma,2,Jane,Austen,Novel\n")
    assert not [query for query in second if query["sql"].startswith("DROP")]
    assert parts_of_sqlite() == before
    assert [book.page_count for book in Book.objects.search("EMM")] == [1, 2]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL keeps them")
def test_an_import_respects_triggers_and_indexes_of_others(tmp_path):
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE mine (book bigint)")
        cursor.execute(
            "CREATE TRIGGER catalog_book_search_mine AFTER INSERT ON catalog_book "
            "BEGIN INSERT INTO mine VALUES (new.id); END"
        )
        cursor.execute('CREATE INDEX "my ""own""" ON catalog_book (page_count)')
        before = parts_of_sqlite()
        import_lines(tmp_path, "Emma,1,Jane,Austen,\nWaverley,1,Walter,Scott,\n")
        assert parts_of_sqlite() == before
        assert cursor.execute("SELECT count(*) FROM mine").fetchone() == (2,)


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL keeps them")
def test_a_refused_import_leaves_the_indexes(tmp_path):
    before = parts_of_sqlite()
    with pytest.raises(bulk.ImportRefusedError):
        import_lines(tmp_path, "Emma,1,Jane,Austen,\n,1,B,C,\n")
    assert parts_of_sqlite() == before
