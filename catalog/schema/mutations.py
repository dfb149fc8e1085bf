"""The fields of Mutation: each authorises, changes rows and reads its answer in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphene
from django.db import transaction
from graphql import GraphQLResolveInfo

from catalog import authors, books, categories
from catalog.execution.plans import objects_by_key
from catalog.models import TypeName
from catalog.schema.inputs import AuthorInput, BookInput, CategoryInput
from catalog.schema.types import Author, Book, Category

ID = graphene.Argument(graphene.ID, name="id", required=True)


def answer(info: GraphQLResolveInfo, type_name: TypeName, key: int) -> Any:
    """Read a changed row with everything that is selected."""
    return objects_by_key(info, type_name, info.field_nodes, [key])[key]


def change(
    output: Any,
    run: Callable[..., Any],
    description: str | None = None,
    **arguments: Any,
) -> graphene.Field:
    """Return a field of Mutation; `run` returns the changed row's key, or the Boolean."""

    def resolve(_: None, info: GraphQLResolveInfo, **values: Any) -> Any:
        info.context.authorize_change()
        with transaction.atomic():
            result = run(**values)
            if output is graphene.Boolean:
                return result
            return answer(info, output.__name__, result)

    return graphene.Field(
        output, resolver=resolve, description=description, **arguments
    )


BOOK, AUTHOR = BookInput(required=True), AuthorInput(required=True)
CATEGORY = CategoryInput(required=True)


class Mutation(graphene.ObjectType):
    """What can be changed."""

    add_book = change(Book, lambda book: books.add(**book), book=BOOK)
    update_book = change(
        Book, lambda book_id, book: books.update(book_id, **book), book_id=ID, book=BOOK
    )
    delete_book = change(
        graphene.Boolean,
        books.delete,
        "False when there is no such book.",
        book_id=ID,
    )
    add_author = change(Author, lambda author: authors.add(**author), author=AUTHOR)
    update_author = change(
        Author,
        lambda author_id, author: authors.update(author_id, **author),
        author_id=ID,
        author=AUTHOR,
    )
    delete_author = change(
        graphene.Boolean,
        authors.delete,
        "False when there is no such author; an error while there are books.",
        author_id=ID,
    )
    add_category = change(
        Category, lambda category: categories.add(**category), category=CATEGORY
    )
