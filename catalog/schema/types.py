"""The output types, field for field as the contract lists them: every field may be null."""

from __future__ import annotations

from typing import Any

import graphene

from catalog.models import Author as AuthorRow
from catalog.models import Category as CategoryRow


class Book(graphene.ObjectType):
    """A book, with its author and, where it has one, its category."""

    id = graphene.ID()
    name = graphene.String()
    page_count = graphene.Int()
    author = graphene.Field(lambda: Author)
    category = graphene.Field(lambda: Category)


class Author(graphene.ObjectType):
    """Who wrote a book."""

    id = graphene.ID()
    first_name = graphene.String()
    last_name = graphene.String()
    book_count = graphene.Int(description="How many books this author has.")
    books = graphene.List(Book, description="The author's books, the oldest first.")

    @staticmethod
    def resolve_book_count(author: AuthorRow, _info: Any) -> int:
        count: int = author.loaded_book_count  # type: ignore[attr-defined]
        return count

    @staticmethod
    def resolve_books(author: AuthorRow, _info: Any) -> Any:
        return author.loaded_books  # type: ignore[attr-defined]


class Category(graphene.ObjectType):
    """What kind of book a book is."""

    id = graphene.ID()
    name = graphene.String()
    description = graphene.String()
    books = graphene.List(Book, description="Its books, the oldest first.")

    @staticmethod
    def resolve_books(category: CategoryRow, _info: Any) -> Any:
        return category.loaded_books  # type: ignore[attr-defined]
