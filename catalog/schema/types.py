"""The output types, field for field as the contract lists them: every field may be null."""

from __future__ import annotations

from typing import Any

import graphene
from graphene_django import DjangoObjectType

from catalog import models
from catalog.execution.roles import resolve_attribute

KEY = "A number, as a text."


class RowType(DjangoObjectType):
    """A type of rows, whose fields are declared: graphene-django would make them non-null.

    A field that has no resolver answers the column or the relation of its name, or the number of
    rows that refer to its row (`bookCount`); otherwise the attribute of the model instance.
    """

    class Meta:
        abstract = True

    resolve_id = None  # that of DjangoObjectType expects a model instance

    @classmethod
    def __init_subclass_with_meta__(cls, **options: Any) -> None:
        super().__init_subclass_with_meta__(
            fields=(), default_resolver=resolve_attribute, **options
        )


class Book(RowType):
    """A book, with its author and, where it has one, its category."""

    class Meta:
        model = models.Book

    id = graphene.ID(description=KEY)
    name = graphene.String(description="The title.")
    page_count = graphene.Int(description="How many pages it has.")
    author = graphene.Field(lambda: Author, description="Who wrote it.")
    category = graphene.Field(lambda: Category, description="Null if it has none.")


class Author(RowType):
    """Who wrote a book."""

    class Meta:
        model = models.Author

    id = graphene.ID(description=KEY)
    first_name = graphene.String(description="The first names.")
    last_name = graphene.String(description="The family name.")
    book_count = graphene.Int(description="How many books this author has.")
    books = graphene.List(Book, description="The author's books, the oldest first.")


class Category(RowType):
    """What kind of book a book is."""

    class Meta:
        model = models.Category

    id = graphene.ID(description=KEY)
    name = graphene.String(description="What it is called.")
    description = graphene.String(description="What belongs to it; null if unknown.")
    books = graphene.List(Book, description="Its books, the oldest first.")
