"""What the naive catalogue does for a mutation."""

from __future__ import annotations

from typing import Any

from catalog.models import Author, Category
from tests.catalog.reference_rows import books_of, refusal, row_by_id


def text(value: str | None, field: str, most: int = 255, *, blank: bool = False) -> Any:
    if value is not None and (
        (not blank and not value.strip()) or "\0" in value or len(value) > most
    ):
        raise refusal("BAD_USER_INPUT", field=field)
    return value


def draft(book: dict[str, Any]) -> dict[str, Any]:
    text(book["name"], "name")
    if book["pageCount"] < 0:
        raise refusal("BAD_USER_INPUT", field="pageCount")
    author = row_by_id(Author, book["authorId"])
    if author is None:
        raise refusal("NOT_FOUND", field="authorId")
    category = None
    if book.get("categoryId") is not None:
        category = row_by_id(Category, book["categoryId"])
        if category is None:
            raise refusal("NOT_FOUND", field="categoryId")
    return {
        "name": book["name"],
        "page_count": book["pageCount"],
        "author": author,
        "category": category,
    }


def person(author: dict[str, Any]) -> dict[str, Any]:
    return {
        "first_name": text(author["firstName"], "firstName"),
        "last_name": text(author["lastName"], "lastName"),
    }


def replace(model: Any, key: str, columns: dict[str, Any]) -> Any:
    row = row_by_id(model, key)
    if row is None:
        raise refusal("NOT_FOUND", field="id")
    for column, value in columns.items():
        setattr(row, column, value)
    row.save()
    return row


def remove(model: Any, key: str) -> bool:
    row = row_by_id(model, key)
    if row is None:
        return False
    if model is Author and (books := books_of(row)):
        raise refusal("AUTHOR_HAS_BOOKS", bookCount=len(books))
    row.delete()
    return True


def add_category(_: Any, category: dict[str, Any]) -> Category:
    return Category.objects.create(
        name=text(category["name"], "name"),
        description=text(
            category.get("description"), "description", 10_000, blank=True
        ),
    )
