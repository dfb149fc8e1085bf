"""The fields of Mutation, and their inputs.

The execution checks the right to change rows, and runs each field in a transaction, which it keeps
if nothing failed.
"""

from __future__ import annotations

from typing import Any

import graphene

from catalog import changes
from catalog.execution.readings import Reading
from catalog.schema.queries import author_by_key, book_by_key, category_by_key
from catalog.schema.types import Author, Book, Category
from catalog.texts import DESCRIPTION_LENGTH, NAME_LENGTH

ID = graphene.ID(required=True, description="The id of the record.")
TEXT = f"Not blank, at most {NAME_LENGTH} characters."
LONG_TEXT = f"At most {DESCRIPTION_LENGTH:,} characters."


class BookInput(graphene.InputObjectType):
    """All fields of a book; an update replaces them all."""

    name = graphene.String(required=True, description=TEXT)
    page_count = graphene.Int(required=True, description="Zero or more.")
    author_id = graphene.Int(required=True, description="The id of its author.")
    category_id = graphene.Int(description="Left out or null: no category.")


class AuthorInput(graphene.InputObjectType):
    """Both names of an author."""

    first_name = graphene.String(required=True, description=TEXT)
    last_name = graphene.String(required=True, description=TEXT)


class CategoryInput(graphene.InputObjectType):
    """A category."""

    name = graphene.String(required=True, description=TEXT)
    description = graphene.String(description=LONG_TEXT)


BOOK = BookInput(required=True, description="Its fields.")
AUTHOR = AuthorInput(required=True, description="Its fields.")
CATEGORY = CategoryInput(required=True, description="Its fields.")


class AddBook(graphene.Mutation):
    """Add a book."""

    Output = Book

    class Arguments:
        book = BOOK

    def mutate(_root, _info: object, book: dict[str, Any]) -> Reading:
        return book_by_key(key=changes.add_book(**book))


class UpdateBook(graphene.Mutation):
    """Replace every field of a book."""

    Output = Book

    class Meta:
        arguments = {"id": ID, "book": BOOK}  # `Arguments` would sort them by name

    def mutate(_root, _info: object, id: str, book: dict[str, Any]) -> Reading:
        return book_by_key(key=changes.update_book(id, **book))


class DeleteBook(graphene.Mutation):
    """Delete a book. False when there is no such book."""

    Output = graphene.Boolean

    class Arguments:
        id = ID

    def mutate(_root, _info: object, id: str) -> bool:
        return changes.delete_book(id)


class AddAuthor(graphene.Mutation):
    """Add an author."""

    Output = Author

    class Arguments:
        author = AUTHOR

    def mutate(_root, _info: object, author: dict[str, Any]) -> Reading:
        return author_by_key(key=changes.add_author(**author))


class UpdateAuthor(graphene.Mutation):
    """Replace both names of an author."""

    Output = Author

    class Meta:
        arguments = {"id": ID, "author": AUTHOR}

    def mutate(_root, _info: object, id: str, author: dict[str, Any]) -> Reading:
        return author_by_key(key=changes.update_author(id, **author))


class DeleteAuthor(graphene.Mutation):
    """Delete an author. False when there is none; an error while there are books."""

    Output = graphene.Boolean

    class Arguments:
        id = ID

    def mutate(_root, _info: object, id: str) -> bool:
        return changes.delete_author(id)


class AddCategory(graphene.Mutation):
    """Add a category."""

    Output = Category

    class Arguments:
        category = CATEGORY

    def mutate(_root, _info: object, category: dict[str, Any]) -> Reading:
        return category_by_key(key=changes.add_category(**category))


class Mutation(graphene.ObjectType):
    """What can be changed."""

    add_book = AddBook.Field()
    update_book = UpdateBook.Field()
    delete_book = DeleteBook.Field()
    add_author = AddAuthor.Field()
    update_author = UpdateAuthor.Field()
    delete_author = DeleteAuthor.Field()
    add_category = AddCategory.Field()
