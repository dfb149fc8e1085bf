"""The fields of Mutation. The executor runs each in a transaction and keeps it if nothing failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphene
from graphql import GraphQLResolveInfo

from catalog import authors, book_lists, books, categories
from catalog.book_lists import MOST_ITEMS, ItemsRefusedError
from catalog.execution.plans import objects_by_key
from catalog.models import TypeName
from catalog.schema.inputs import (
    AuthorInput,
    BookInput,
    BookUpsertInput,
    CategoryInput,
)
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


class BookFault(graphene.ObjectType):
    """Why an item of a list is not accepted."""

    index = graphene.Int(required=True, description="Its place in the list, from 0.")
    code = graphene.String(required=True, description="As in `extensions.code`.")
    message = graphene.String(required=True, description="What is wrong.")
    field = graphene.String(description="The field that is wrong.")


class BooksPayload(graphene.ObjectType):
    """The books of a list that was stored, or why nothing was."""

    books = graphene.List(
        graphene.NonNull(Book), description="In the list's order; null after a fault."
    )
    errors = graphene.List(
        graphene.NonNull(BookFault),
        required=True,
        description="The items that are not accepted; nothing is stored if there are any.",
    )

    def resolve_books(keys_and_faults: Any, info: GraphQLResolveInfo) -> Any:  # noqa: N805 - graphene's form
        keys, faults = keys_and_faults
        if faults:
            return None
        objects = objects_by_key(info, "Book", info.field_nodes, keys)
        return [objects[key] for key in keys]

    def resolve_errors(keys_and_faults: Any, _info: GraphQLResolveInfo) -> Any:  # noqa: N805
        return [
            BookFault(
                index=fault.index,
                code=fault.error.code,
                message=str(fault.error),
                field=fault.error.extensions.get("field"),
            )
            for fault in keys_and_faults[1]
        ]


def change_books(run: Callable[[Any], list[int]], items: Any, text: str) -> Any:
    """Return a field of Mutation that changes a list of books."""

    def resolve(_: None, info: GraphQLResolveInfo, books: list[Any]) -> Any:
        info.context.authorize_change()
        try:
            return run(books), []
        except ItemsRefusedError as refusal:
            return [], refusal.faults

    books = graphene.List(
        graphene.NonNull(items), required=True, description=f"At most {MOST_ITEMS:,}."
    )
    return graphene.Field(BooksPayload, books=books, resolver=resolve, description=text)


def delete_books(_: None, info: GraphQLResolveInfo, book_ids: list[str]) -> list[bool]:
    info.context.authorize_change()
    return book_lists.delete(book_ids)


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
    add_books = change_books(
        book_lists.add, BookInput, "Add books: all of them, or none."
    )
    upsert_books = change_books(
        book_lists.upsert,
        BookUpsertInput,
        "Add books, or replace those with the same external ids: all of them, or none.",
    )
    delete_books = graphene.Field(
        graphene.List(graphene.NonNull(graphene.Boolean)),
        book_ids=graphene.List(
            graphene.NonNull(graphene.ID),
            required=True,
            description=f"At most {MOST_ITEMS:,}.",
        ),
        resolver=delete_books,
        description="Delete books. For each id, false when there is no such book.",
    )
