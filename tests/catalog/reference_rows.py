"""The rows of the naive catalogue, and how it refuses."""

from __future__ import annotations

from typing import Any

from graphql import GraphQLError

from catalog.models import Author, Book

Rows = list[Any]


def refusal(code: str, message: str = "", **more: Any) -> GraphQLError:
    return GraphQLError(message, extensions={"code": code, **more})


def everything(model: Any) -> Rows:
    return sorted(model.objects.all(), key=lambda row: row.pk)


def row_by_id(model: Any, key: object) -> Any:
    """Return the row that an id names; other texts than a row's own id name nothing."""
    return next((row for row in everything(model) if str(row.pk) == str(key)), None)


def books_of(owner: Any) -> Rows:
    column = "author_id" if isinstance(owner, Author) else "category_id"
    return [book for book in everything(Book) if getattr(book, column) == owner.pk]
