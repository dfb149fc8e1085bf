"""Changes to books. Run each inside a transaction."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.errors import BadUserInputError, NotFoundError
from catalog.events import publish_change
from catalog.identifiers import LARGEST_32, primary_key
from catalog.models import Author, Book, Category
from catalog.text import checked, folded

MISSING = "There is no {} with this id."


@dataclass(frozen=True, slots=True)
class Draft:
    """A book as a client describes it."""

    name: str
    page_count: int
    author_id: int
    category_id: int | None = None

    def columns(self) -> dict[str, str | int | None]:
        """Return the columns of the row; raise BadUserInputError or NotFoundError."""
        name = checked(self.name, field="name")
        if self.page_count < 0:
            raise BadUserInputError(
                "pageCount must not be negative.", field="pageCount"
            )
        return {
            "name": name,
            "page_count": self.page_count,
            "author_id": existing(Author, self.author_id, field="authorId"),
            "category_id": None
            if self.category_id is None
            else existing(Category, self.category_id, field="categoryId"),
        }

    def told(self) -> dict[str, str | int | None]:
        """Return the book as an event tells it, in the words of the contract."""
        return {
            "name": self.name,
            "pageCount": self.page_count,
            "authorId": self.author_id,
            "categoryId": self.category_id,
        }


def existing(model: type[Author | Category], value: int, *, field: str) -> int:
    """Return the key of a row that stays until the transaction ends, or raise NotFoundError."""
    key = primary_key(value, largest=LARGEST_32)
    if not model.objects.lock([key]):
        raise NotFoundError(MISSING.format(model.__name__.lower()), field=field)
    return key


def add(draft: Draft) -> int:
    """Store a new book and return its key."""
    book = Book.objects.create(**draft.columns())
    publish_change("book.created", book.pk, **draft.told())
    return book.pk


def update(book_id: str, draft: Draft) -> int:
    """Replace every field of a book and return its key."""
    columns, key = draft.columns(), primary_key(book_id)
    changed = Book.objects.filter(pk=key).update(
        **columns, name_folded=folded(draft.name)
    )
    if not changed:
        raise NotFoundError(MISSING.format("book"), field="id")
    publish_change("book.updated", key, **draft.told())
    return key


def delete(book_id: str) -> bool:
    """Delete a book; False when there is none."""
    key = primary_key(book_id)
    deleted, _ = Book.objects.filter(pk=key).delete()
    if deleted:
        publish_change("book.deleted", key)
    return bool(deleted)
