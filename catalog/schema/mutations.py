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


class AddBook(graphene.Mutation):
    """Add a book."""

    Output = Book

    class Arguments:
        book = BOOK

    def mutate(_root, _info: object, book: Fields) -> RowsByKey:
        return RowsByKey("Book", [books.add(**book)])


class UpdateBook(graphene.Mutation):
    """Replace every field of a book."""

    Output = Book

    class Meta:
        # `Arguments` would sort them by name.
        arguments = {"id": ID, "book": BOOK}

    def mutate(_root, _info: object, id: str, book: Fields) -> RowsByKey:
        return RowsByKey("Book", [books.update(id, **book)])


class DeleteBook(graphene.Mutation):
    """Delete a book. False when there is no such book."""

    Output = graphene.Boolean

    class Arguments:
        id = ID

    def mutate(_root, _info: object, id: str) -> bool:
        return books.delete(id)


class AddAuthor(graphene.Mutation):
    """Add an author."""

    Output = Author

    class Arguments:
        author = AUTHOR

    def mutate(_root, _info: object, author: Fields) -> RowsByKey:
        return RowsByKey("Author", [authors.add(**author)])


class UpdateAuthor(graphene.Mutation):
    """Replace both names of an author."""

    Output = Author

    class Meta:
        # `Arguments` would sort them by name.
        arguments = {"id": ID, "author": AUTHOR}

    def mutate(_root, _info: object, id: str, author: Fields) -> RowsByKey:
        return RowsByKey("Author", [authors.update(id, **author)])


class DeleteAuthor(graphene.Mutation):
    """Delete an author. False when there is none; an error while there are books."""

    Output = graphene.Boolean

    class Arguments:
        id = ID

    def mutate(_root, _info: object, id: str) -> bool:
        return authors.delete(id)


class AddCategory(graphene.Mutation):
    """Add a category."""

    Output = Category

    class Arguments:
        category = CATEGORY

    def mutate(_root, _info: object, category: Fields) -> RowsByKey:
        return RowsByKey("Category", [categories.add(**category)])


class AddBooks(graphene.Mutation):
    """Add books: all of them, or none."""

    Output = BooksPayload

    class Arguments:
        books = listed(BookInput, MOST, required=True)

    def mutate(_root, _info: object, books: list[Fields]) -> BooksPayload:
        return payload(add_list, books)


class UpsertBooks(graphene.Mutation):
    """Add books, or replace those with the same external ids: all of them, or none."""

    Output = BooksPayload

    class Arguments:
        books = listed(BookUpsertInput, MOST, required=True)

    def mutate(_root, _info: object, books: list[Fields]) -> BooksPayload:
        return payload(upsert_list, books)


class DeleteBooks(graphene.Mutation):
    """Delete books. For each id, false when there is no such book."""

    Output = graphene.List(graphene.NonNull(graphene.Boolean))

    class Arguments:
        book_ids = listed(graphene.ID, MOST, required=True)

    def mutate(_root, _info: object, book_ids: list[str]) -> list[bool]:
        return books.delete_list(book_ids)


class Mutation(graphene.ObjectType):
    """What can be changed."""

    add_book = AddBook.Field()
    update_book = UpdateBook.Field()
    delete_book = DeleteBook.Field()
    add_author = AddAuthor.Field()
    update_author = UpdateAuthor.Field()
    delete_author = DeleteAuthor.Field()
    add_category = AddCategory.Field()
    add_books = AddBooks.Field()
    upsert_books = UpsertBooks.Field()
    delete_books = DeleteBooks.Field()
