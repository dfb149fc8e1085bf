"""Changes to books, to one or to many: all of them or none. Run each inside a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any

from catalog.errors import BadUserInputError, CatalogError, NotFoundError
from catalog.identifiers import LARGEST_32, primary_key
from catalog.models import Author, Book, Category, locked
from catalog.text_checks import check_name, folded

MOST_ITEMS = 1_000
REPLACED = ("name", "name_folded", "page_count", "author", "category")
Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the item at an index, as an error of a single change says it."""

    index: int
    error: CatalogError


class ItemsRefusedError(Exception):
    """Items of which some are not accepted; nothing was written."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(f"{len(faults)} items are refused")
        self.faults = faults


# ── One book ───────────────────────────────────────────────────────────────────────────


def add(**fields: Any) -> int:
    """Store a new book and return its key; raise BadUserInputError or NotFoundError."""
    check_one(fields)
    return Book.objects.create(**fields).pk


def update(book_id: str, **fields: Any) -> int:
    """Replace every field of a book and return its key; raise as `add` does."""
    check_one(fields)
    book = Book(pk=primary_key(book_id), **fields)
    rows = Book.objects.filter(pk=book.pk)
    columns = {
        "name": book.name,
        "name_folded": folded(book.name),
        "page_count": book.page_count,
        "author_id": book.author_id,
        "category_id": book.category_id,
    }
    if not rows.update(**columns):
        raise NotFoundError("book", field="id")
    return book.pk


def delete(book_id: str) -> bool:
    """Delete a book; return False if it does not exist."""
    deleted, _ = Book.objects.filter(pk=primary_key(book_id)).delete()
    return bool(deleted)


# ── Many books ─────────────────────────────────────────────────────────────────────────


def add_list(items: Sequence[Fields]) -> list[int]:
    """Store new books and return their keys in the order of the items.

    Raises BadUserInputError for too many items, and ItemsRefusedError.
    """
    check_items(items)
    books = Book.objects.bulk_create([Book(**item) for item in items])
    return [book.pk for book in books]


def upsert_list(items: Sequence[Fields]) -> list[int]:
    """Store books or replace those with the same external ids; return their keys in order.

    Raises as `add_list` does.
    """
    check_items(items)
    keys = [item["external_id"] for item in items]
    # By key, so that two upserts of the same books cannot deadlock.
    rows = [Book(**item) for item in sorted(items, key=itemgetter("external_id"))]
    books = Book.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["external_id"],
        update_fields=REPLACED,
    )
    by_key = {book.external_id: book.pk for book in books}
    return [by_key[key] for key in keys]


def delete_list(ids: Sequence[str]) -> list[bool]:
    """Delete books; return for each id whether its book existed.

    Raises BadUserInputError for too many ids.
    """
    check_number(ids, field="bookIds")
    keys = [primary_key(each) for each in ids]
    existing = locked(Book, keys)
    Book.objects.filter(pk__in=existing).delete()
    return [key in existing for key in keys]


# ── Checks ─────────────────────────────────────────────────────────────────────────────
# They leave authors and categories locked until the transaction ends.


def check_one(fields: Fields) -> None:
    for check in (field_faults, reference_faults):
        for fault in check([fields]):
            raise fault.error


def check_items(items: Sequence[Fields]) -> None:
    check_number(items, field="books")
    faults = [*field_faults(items), *reference_faults(items)]
    if faults:
        raise ItemsRefusedError(sorted(faults, key=attrgetter("index")))


def check_number(items: Sequence[Any], *, field: str) -> None:
    if len(items) > MOST_ITEMS:
        raise BadUserInputError(
            f"{field} must have at most {MOST_ITEMS:,} items.", field=field
        )


def field_faults(items: Sequence[Fields]) -> Iterable[Fault]:
    """Yield the first fault of each item in its own fields."""
    seen: set[str] = set()
    for index, item in enumerate(items):
        try:
            check_name(item["name"], field="name")
            if item["page_count"] < 0:
                message = "pageCount must not be negative."
                raise BadUserInputError(message, field="pageCount")
            if (key := item.get("external_id")) is not None:
                check_name(key, field="externalId")
                if key in seen:
                    message = "externalId is that of an item before."
                    raise BadUserInputError(message, field="externalId")
                seen.add(key)
        except CatalogError as error:
            yield Fault(index, error)


def reference_faults(items: Sequence[Fields]) -> Iterable[Fault]:
    """Yield a fault for each author and category that does not exist."""
    for model, column, field in (
        (Author, "author_id", "authorId"),
        (Category, "category_id", "categoryId"),
    ):
        named = {item.get(column) for item in items} - {None}
        keys = {primary_key(key, largest=LARGEST_32) for key in named}
        existing = locked(model, keys) if keys else ()
        for index, item in enumerate(items):
            key = item.get(column)
            if key is not None and key not in existing:
                yield Fault(index, NotFoundError(model.__name__.lower(), field=field))
