"""Rows of the catalogue for tests."""

from django.core.management.color import no_style
from django.db import connection
from factory.declarations import Sequence, SubFactory
from factory.django import DjangoModelFactory

from catalog.models import Author, Book, Category


class AuthorFactory(DjangoModelFactory[Author]):
    class Meta:
        model = Author

    first_name = Sequence(lambda n: f"First {n}")
    last_name = Sequence(lambda n: f"Last {n}")


class CategoryFactory(DjangoModelFactory[Category]):
    class Meta:
        model = Category

    name = Sequence(lambda n: f"Category {n}")


class BookFactory(DjangoModelFactory[Book]):
    class Meta:
        model = Book

    name = Sequence(lambda n: f"Book {n}")
    page_count = 100
    author = SubFactory(AuthorFactory)


def number_on() -> None:
    """Let the next row of each table follow the last one that is there, on PostgreSQL too."""
    tables = [Author, Category, Book]
    with connection.cursor() as cursor:
        for sql in connection.ops.sequence_reset_sql(no_style(), tables):
            cursor.execute(sql)
