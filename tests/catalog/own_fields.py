"""Fields as users of graphene-django add them to the catalogue's types."""

from typing import Any

import graphene
import pytest
from graphene_django import DjangoListField

from catalog.execution import roles
from catalog.execution.readings import kept
from catalog.models import Author as AuthorRow
from catalog.models import Book as BookRow
from catalog.schema.mutations import Mutation
from catalog.schema.queries import Query
from catalog.schema.types import Author, Book, Category

Fields = dict[Any, dict[str, Any]]

books_with = kept(lambda part: BookRow.objects.filter(name_folded__contains=part))
BOOKS = graphene.NonNull(graphene.List(graphene.NonNull(Book)))
FIELDS: Fields = {
    Author: {
        "full_name": graphene.String(resolver=lambda author, _: str(author)),
        "pk": graphene.Int(),  # an attribute of the model
        "last_name": graphene.NonNull(graphene.String),
        "book_count": graphene.NonNull(graphene.Int),
        "books": BOOKS,
        "all_books": DjangoListField(Book, source="books"),
        "last_book": graphene.Field(Book, resolver=lambda row, _: row.books.last()),
    },
    Book: {
        "page_count": graphene.String(),  # another type than that of the column
        "author": graphene.NonNull(Author),
        "loud_name": graphene.String(
            mark=graphene.String(default_value="!"),
            resolver=lambda book, _, mark: f"{book.name.upper()}{mark}",
        ),
    },
    Category: {
        "authors": graphene.List(
            Author,
            resolver=lambda row, _: AuthorRow.objects.filter(
                books__category=row
            ).distinct(),
        ),
    },
    Query: {
        "some_books": graphene.Field(
            BOOKS,
            part=graphene.String(required=True),
            resolver=lambda *_, part: books_with(part=part),
        ),
        "first_author": graphene.Field(
            Author, resolver=lambda *_: AuthorRow.objects.first()
        ),
        "people": graphene.List(
            Author, resolver=lambda *_: AuthorRow.objects.prefetch_related("books")
        ),
        "streamed": graphene.List(
            Author, resolver=lambda *_: AuthorRow.objects.iterator()
        ),
    },
}


def schema_with(fields: Fields, patch: pytest.MonkeyPatch) -> Any:
    """Return the catalogue's schema with added fields."""
    for graphene_type, added in fields.items():
        for name, field in added.items():
            is_field = isinstance(field, graphene.Field)
            mounted = field if is_field else graphene.Field.mounted(field)
            patch.setitem(graphene_type._meta.fields, name, mounted)
    schema = graphene.Schema(query=Query, mutation=Mutation).graphql_schema
    roles.check(schema)
    return schema
