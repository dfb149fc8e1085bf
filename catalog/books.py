"""Changes to books. Run each inside a transaction."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.errors import BadUserInputError, NotFoundError
from catalog.events import publish_change
from catalog.identifiers import LARGEST_32, primary_key
from catalog.models import Author, Book, Category
from catalog.text import check_name, folded


@dataclass(frozen=True, slots=True)
class Draft:
    """A book as a client describes it."""

    name: str
    page_count: int
    author_id: int
    category_id: int | None = None

    def columns(self) -> dict[str, str | int | None]:
        """Return the columns of the row; raise BadUserInputError or NotFoundError."""
        check_name(self.name, field="name")
        if self.page_count < 0:
            raise BadUserInputError(
                "pageCount must not be negative.", field="pageCount"
            )
        author_id = locked_key(Author, self.author_id, field="authorId")
        category_id = self.category_id
        if category_id is not None:
            category_id = locked_key(Category, category_id, field="categoryId")
        return {
            "name": self.name,
            "page_count": self.page_count,
            "author_id": author_id,
            "category_id": category_id,
        }

    def event_data(self) -> dict[str, str | int | None]:
        """Return the fields of an event, named as in BookInput."""
        return {
            "name": self.name,
            "pageCount": self.page_count,
            "authorId": self.author_id,
            "categoryId": self.category_id,
        }


def locked_key(model: type[Author | Category], value: int, *, field: str) -> int:
    """Lock a row until the transaction ends and return its key, or raise NotFoundError."""
    key = primary_key(value, largest=LARGEST_32)
    if not model.objects.lock([key]):
        raise NotFoundError(model.__name__.lower(), field=field)
    return key


def add(draft: Draft) -> int:
    """Store a new book and return its key."""
    book = Book.objects.create(**draft.columns())
    publish_change("book.created", book.pk, **draft.event_data())
    return book.pk


def update(book_id: str, draft: Draft) -> int:
    """Replace every field of a book and return its key."""
    columns, key = draft.columns(), primary_key(book_id)
    books = Book.objects.filter(pk=key)
    if not books.update(**columns, name_folded=folded(draft.name)):
        raise NotFoundError("book", field="id")
    publish_change("book.updated", key, **draft.event_data())
    return key


def delete(book_id: str) -> bool:
    """Delete a book; return False if it does not exist."""
    key = primary_key(book_id)
    deleted, _ = Book.objects.filter(pk=key).delete()
    if deleted:
        publish_change("book.deleted", key)
    return bool(deleted)
