"""The output types, field for field as the contract lists them: every field may be null."""

from __future__ import annotations

from typing import Any

import graphene
from graphene_django import DjangoObjectType

from catalog import models
from catalog.execution.plans import resolve_response_name
from catalog.schema.connections import BookFilter, BookOrder, connection, page_field

KEY = "A number, as a text."


class RowType(DjangoObjectType):
    """A type whose rows come from a compiled level: its columns and relations, without resolvers.

    Each field is declared, because graphene-django derives non-null fields from the columns
    and a query per row from the relations. Other fields are resolved from the model instance,
    as in graphene-django; then graphql-core executes the operation instead of a plan.
    """

    class Meta:
        abstract = True

    # Those of DjangoObjectType expect model instances.
    is_type_of = None
    resolve_id = None

    @classmethod
    def __init_subclass_with_meta__(cls, **options: Any) -> None:
        super().__init_subclass_with_meta__(
            fields=(), default_resolver=resolve_response_name, **options
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
    external_id = graphene.String(
        description="The key that upsertBooks gave it; null if it has none."
    )


BookConnection = connection("Book", "books", lambda: Book)


def books_page(description: str) -> graphene.Field:
    return page_field(BookConnection, BookOrder, BookFilter, description)


class Author(RowType):
    """Who wrote a book."""

    class Meta:
        model = models.Author

    id = graphene.ID(description=KEY)
    first_name = graphene.String(description="The first names.")
    last_name = graphene.String(description="The family name.")
    book_count = graphene.Int(description="How many books this author has.")
    books = graphene.List(Book, description="The author's books, the oldest first.")
    books_page = books_page("One page of the author's books.")


class Category(RowType):
    """What kind of book a book is."""

    class Meta:
        model = models.Category

    id = graphene.ID(description=KEY)
    name = graphene.String(description="What it is called.")
    description = graphene.String(description="What belongs to it; null if unknown.")
    books = graphene.List(Book, description="Its books, the oldest first.")
    books_page = books_page("One page of its books.")
