"""Changes to books, authors and categories. Run each inside a transaction."""

from __future__ import annotations

from typing import Any

from catalog.errors import AuthorHasBooksError, BadUserInputError, NotFoundError
from catalog.execution.readings import kept
from catalog.models import Author, Book, Category
from catalog.texts import LARGEST_64, check_name, check_text, folded, primary_key

# Books can be given to a locked row and be read, but it cannot be deleted.
locked_author = kept(
    lambda key: Author.objects.filter(pk=key).select_for_update(no_key=True)
)
locked_category = kept(
    lambda key: Category.objects.filter(pk=key).select_for_update(no_key=True)
)

# ── Books ──────────────────────────────────────────────────────────────────────────────


def add_book(**fields: Any) -> int:
    """Store a new book and return its key; raise BadUserInputError or NotFoundError."""
    check_book(**fields)
    return Book.objects.create(**fields).pk


def update_book(book_id: str, **fields: Any) -> int:
    """Replace every field of a book and return its key; raise as `add_book` does."""
    check_book(**fields)
    key = primary_key(book_id, LARGEST_64)
    columns = {"category_id": None, **fields, "name_folded": folded(fields["name"])}
    if not Book.objects.filter(pk=key).update(**columns):
        raise NotFoundError("book", field="id")
    return key


def delete_book(book_id: str) -> bool:
    """Delete a book; return False if it does not exist."""
    key = primary_key(book_id, LARGEST_64)
    deleted, _ = Book.objects.filter(pk=key).delete()
    return bool(deleted)


def check_book(
    *, name: str, page_count: int, author_id: int, category_id: int | None = None
) -> None:
    """Check the fields; leave author and category locked until the transaction ends."""
    check_name(name, field="name")
    if page_count < 0:
        raise BadUserInputError("pageCount must not be negative.", field="pageCount")
    if not locked_author(key=author_id).rows(("pk",), 1):
        raise NotFoundError("author", field="authorId")
    if category_id is not None and not locked_category(key=category_id).rows(
        ("pk",), 1
    ):
        raise NotFoundError("category", field="categoryId")


# ── Authors and categories ─────────────────────────────────────────────────────────────


def check_names(first_name: str, last_name: str) -> None:
    check_name(first_name, field="firstName")
    check_name(last_name, field="lastName")


def add_author(*, first_name: str, last_name: str) -> int:
    """Store a new author and return the key."""
    check_names(first_name, last_name)
    return Author.objects.create(first_name=first_name, last_name=last_name).pk


def update_author(author_id: str, *, first_name: str, last_name: str) -> int:
    """Replace both names of an author and return the key."""
    check_names(first_name, last_name)
    key = primary_key(author_id)
    rows = Author.objects.filter(pk=key)
    if not rows.update(first_name=first_name, last_name=last_name):
        raise NotFoundError("author", field="id")
    return key


def delete_author(author_id: str) -> bool:
    """Delete an author without books; return False if there is no such author.

    Raise AuthorHasBooksError if there are books.
    """
    key = primary_key(author_id)
    if not locked_author(key=key).rows(("pk",), 1):
        return False
    if book_count := Book.objects.filter(author=key).count():
        raise AuthorHasBooksError(book_count)
    Author.objects.filter(pk=key).delete()
    return True


def add_category(*, name: str, description: str | None = None) -> int:
    """Store a new category and return its key."""
    check_name(name, field="name")
    if description is not None:
        check_text(description, field="description")
    return Category.objects.create(name=name, description=description).pk
