"""The fields of Mutation.

The executor checks the right to change rows, and runs each field in a transaction, which it keeps
if nothing failed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphene

from catalog import authors, books, categories
from catalog.books import MOST_ITEMS, ItemsRefusedError, add_list, upsert_list
from catalog.execution.readings import RowsByKey
from catalog.schema.connections import listed
from catalog.schema.inputs import (
    ID,
    AuthorInput,
    BookInput,
    BookUpsertInput,
    CategoryInput,
)
from catalog.schema.types import Author, Book, Category

Fields = dict[str, Any]

BOOK = BookInput(required=True, description="Its fields.")
AUTHOR = AuthorInput(required=True, description="Its fields.")
CATEGORY = CategoryInput(required=True, description="Its fields.")
MOST = f"At most {MOST_ITEMS:,}."


class BookFault(graphene.ObjectType):
    """Why an item of a list is not accepted."""

    index = graphene.Int(required=True, description="Its place in the list, from 0.")
    code = graphene.String(required=True, description="As in `extensions.code`.")
    message = graphene.String(required=True, description="What is wrong.")
    field = graphene.String(description="The field that is wrong.")


class BooksPayload(graphene.ObjectType):
    """The books of a list that was stored, or why nothing was."""

    books = listed(Book, "In the list's order; null after a fault.")
    errors = listed(
        BookFault,
        "The items that are not accepted; nothing is stored if there are any.",
        required=True,
    )


def payload(change: Callable[[Any], list[int]], items: Any) -> BooksPayload:
    """Change a list of books; return those that are stored, or what is wrong with the items."""
    try:
        return BooksPayload(books=RowsByKey("Book", change(items)), errors=[])
    except ItemsRefusedError as refusal:
        faults = [
            BookFault(
                index=fault.index,
                code=fault.error.code,
                message=str(fault.error),
                field=fault.error.extensions.get("field"),
            )
            for fault in refusal.faults
        ]
        return BooksPayload(errors=faults)


class Mutation(graphene.ObjectType):
    """What can be changed."""

    add_book = graphene.Field(Book, book=BOOK, description="Add a book.")
    update_book = graphene.Field(
        Book, id=ID, book=BOOK, description="Replace every field of a book."
    )
    delete_book = graphene.Boolean(
        id=ID, description="Delete a book. False when there is no such book."
    )
    add_author = graphene.Field(Author, author=AUTHOR, description="Add an author.")
    update_author = graphene.Field(
        Author, id=ID, author=AUTHOR, description="Replace both names of an author."
    )
    delete_author = graphene.Boolean(
        id=ID,
        description="Delete an author. False when there is none; an error while there are books.",
    )
    add_category = graphene.Field(
        Category, category=CATEGORY, description="Add a category."
    )
    add_books = graphene.Field(
        BooksPayload,
        books=listed(BookInput, MOST, required=True),
        description="Add books: all of them, or none.",
    )
    upsert_books = graphene.Field(
        BooksPayload,
        books=listed(BookUpsertInput, MOST, required=True),
        description="Add books, or replace those with the same external ids: all of them, or none.",
    )
    delete_books = listed(
        graphene.Boolean,
        "Delete books. For each id, false when there is no such book.",
        book_ids=listed(graphene.ID, MOST, required=True),
    )

    def resolve_add_book(_root, _info: object, book: Fields) -> RowsByKey:
        return RowsByKey("Book", [books.add(**book)])

    def resolve_update_book(_root, _info: object, id: str, book: Fields) -> RowsByKey:
        return RowsByKey("Book", [books.update(id, **book)])

    def resolve_delete_book(_root, _info: object, id: str) -> bool:
        return books.delete(id)

    def resolve_add_author(_root, _info: object, author: Fields) -> RowsByKey:
        return RowsByKey("Author", [authors.add(**author)])

    def resolve_update_author(
        _root, _info: object, id: str, author: Fields
    ) -> RowsByKey:
        return RowsByKey("Author", [authors.update(id, **author)])

    def resolve_delete_author(_root, _info: object, id: str) -> bool:
        return authors.delete(id)

    def resolve_add_category(_root, _info: object, category: Fields) -> RowsByKey:
        return RowsByKey("Category", [categories.add(**category)])

    def resolve_add_books(_root, _info: object, books: list[Fields]) -> BooksPayload:
        return payload(add_list, books)

    def resolve_upsert_books(_root, _info: object, books: list[Fields]) -> BooksPayload:
        return payload(upsert_list, books)

    def resolve_delete_books(_root, _info: object, book_ids: list[str]) -> list[bool]:
        return books.delete_list(book_ids)
