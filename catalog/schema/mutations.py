"""The fields of Mutation. The executor runs each in a transaction and keeps it if nothing failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphene
from graphql import GraphQLResolveInfo

from catalog import authors, books, categories
from catalog.execution.plans import objects_by_key
from catalog.models import TypeName
from catalog.schema.inputs import AuthorInput, BookInput, CategoryInput
from catalog.schema.types import Author, Book, Category

ID = graphene.Argument(
    graphene.ID, name="id", required=True, description="The id of the record."
)


def answer(info: GraphQLResolveInfo, type_name: TypeName, key: int) -> Any:
    """Read a changed row with everything that is selected."""
    return objects_by_key(info, type_name, info.field_nodes, [key])[key]


def change(
    output: Any,
    run: Callable[..., Any],
    description: str,
    **arguments: Any,
) -> graphene.Field:
    """Return a field of Mutation; `run` returns the changed row's key, or the Boolean."""

    def resolve(_: None, info: GraphQLResolveInfo, **values: Any) -> Any:
        info.context.authorize_change()
        result = run(**values)
        if output is graphene.Boolean:
            return result
        return answer(info, output.__name__, result)

    return graphene.Field(
        output, resolver=resolve, description=description, **arguments
    )


BOOK = BookInput(required=True, description="Its fields.")
AUTHOR = AuthorInput(required=True, description="Its fields.")
CATEGORY = CategoryInput(required=True, description="Its fields.")


class Mutation(graphene.ObjectType):
    """What can be changed."""

    add_book = change(Book, lambda book: books.add(**book), "Add a book.", book=BOOK)
    update_book = change(
        Book,
        lambda book_id, book: books.update(book_id, **book),
        "Replace every field of a book.",
        book_id=ID,
        book=BOOK,
    )
    delete_book = change(
        graphene.Boolean,
        books.delete,
        "Delete a book. False when there is no such book.",
        book_id=ID,
    )
    add_author = change(
        Author, lambda author: authors.add(**author), "Add an author.", author=AUTHOR
    )
    update_author = change(
        Author,
        lambda author_id, author: authors.update(author_id, **author),
        "Replace both names of an author.",
        author_id=ID,
        author=AUTHOR,
    )
    delete_author = change(
        graphene.Boolean,
        authors.delete,
        "Delete an author. False when there is none; an error while there are books.",
        author_id=ID,
    )
    add_category = change(
        Category,
        lambda category: categories.add(**category),
        "Add a category.",
        category=CATEGORY,
    )
