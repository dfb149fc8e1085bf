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
from catalog.schema.inputs import (
    AuthorInput,
    BookInput,
    BookUpsertInput,
    CategoryInput,
)
from catalog.schema.types import Author, Book, Category

Fields = dict[str, Any]

ID = graphene.Argument(
    graphene.ID, name="id", required=True, description="The id of the record."
)
BOOK = BookInput(required=True, description="Its fields.")
AUTHOR = AuthorInput(required=True, description="Its fields.")
MOST = f"At most {MOST_ITEMS:,}."


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
        arguments = {"book_id": ID, "book": BOOK}  # `Arguments` would sort them by name

    def mutate(_root, _info: object, book_id: str, book: Fields) -> RowsByKey:
        return RowsByKey("Book", [books.update(book_id, **book)])


class DeleteBook(graphene.Mutation):
    """Delete a book. False when there is no such book."""

    Output = graphene.Boolean

    class Arguments:
        book_id = ID

    def mutate(_root, _info: object, book_id: str) -> bool:
        return books.delete(book_id)


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
        arguments = {
            "author_id": ID,
            "author": AUTHOR,
        }  # `Arguments` would sort them by name

    def mutate(_root, _info: object, author_id: str, author: Fields) -> RowsByKey:
        return RowsByKey("Author", [authors.update(author_id, **author)])


class DeleteAuthor(graphene.Mutation):
    """Delete an author. False when there is none; an error while there are books."""

    Output = graphene.Boolean

    class Arguments:
        author_id = ID

    def mutate(_root, _info: object, author_id: str) -> bool:
        return authors.delete(author_id)


class AddCategory(graphene.Mutation):
    """Add a category."""

    Output = Category

    class Arguments:
        category = CategoryInput(required=True, description="Its fields.")

    def mutate(_root, _info: object, category: Fields) -> RowsByKey:
        return RowsByKey("Category", [categories.add(**category)])


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


class AddBooks(graphene.Mutation):
    """Add books: all of them, or none."""

    Output = BooksPayload

    class Arguments:
        books = graphene.List(
            graphene.NonNull(BookInput), required=True, description=MOST
        )

    def mutate(_root, _info: object, books: list[Fields]) -> BooksPayload:
        return payload(add_list, books)


class UpsertBooks(graphene.Mutation):
    """Add books, or replace those with the same external ids: all of them, or none."""

    Output = BooksPayload

    class Arguments:
        books = graphene.List(
            graphene.NonNull(BookUpsertInput), required=True, description=MOST
        )

    def mutate(_root, _info: object, books: list[Fields]) -> BooksPayload:
        return payload(upsert_list, books)


class DeleteBooks(graphene.Mutation):
    """Delete books. For each id, false when there is no such book."""

    Output = graphene.List(graphene.NonNull(graphene.Boolean))

    class Arguments:
        book_ids = graphene.List(
            graphene.NonNull(graphene.ID), required=True, description=MOST
        )

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
