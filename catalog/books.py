"""Changes to books. Run each inside a transaction."""

from __future__ import annotations

from typing import Any

from catalog.errors import BadUserInputError, NotFoundError
from catalog.events import publish_change
from catalog.identifiers import LARGEST_32, primary_key
from catalog.models import Author, Book, Category
from catalog.text_checks import check_name, folded


def checked(
    *, name: str, page_count: int, author_id: int, category_id: int | None = None
) -> dict[str, Any]:
    """Return the columns of a book; raise BadUserInputError or NotFoundError.

    Author and category stay locked until the transaction ends.
    """
    check(name, page_count)
    lock(Author, author_id, field="authorId")
    if category_id is not None:
        lock(Category, category_id, field="categoryId")
    return {
        "name": name,
        "page_count": page_count,
        "author_id": author_id,
        "category_id": category_id,
    }


def check(name: str, page_count: int) -> None:
    """Raise BadUserInputError for the fields of a book that name no other row."""
    check_name(name, field="name")
    if page_count < 0:
        raise BadUserInputError("pageCount must not be negative.", field="pageCount")


def lock(model: type[Author | Category], key: int, *, field: str) -> None:
    if not model.objects.locked([primary_key(key, largest=LARGEST_32)]):
        raise NotFoundError(model.__name__.lower(), field=field)


def add(**fields: Any) -> int:
    """Store a new book and return its key; for the fields see `checked`."""
    columns = checked(**fields)
    key = Book.objects.create(**columns).pk
    publish_change("book.created", key, **columns)
    return key


def update(book_id: str, **fields: Any) -> int:
    """Replace every field of a book and return its key."""
    columns, key = checked(**fields), primary_key(book_id)
    books = Book.objects.filter(pk=key)
    if not books.update(**columns, name_folded=folded(columns["name"])):
        raise NotFoundError("book", field="id")
    publish_change("book.updated", key, **columns)
    return key


def delete(book_id: str) -> bool:
    """Delete a book; return False if it does not exist."""
    key = primary_key(book_id)
    deleted, _ = Book.objects.filter(pk=key).delete()
    if deleted:
        publish_change("book.deleted", key)
    return bool(deleted)
