"""Changes to many books at once: all of them or none. Run each inside a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.books import check
from catalog.errors import BadUserInputError, CatalogError, NotFoundError
from catalog.events import publish_change
from catalog.identifiers import LARGEST_32, primary_key
from catalog.models import Author, Book, Category
from catalog.text_checks import check_name

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


def add(items: Sequence[Fields]) -> list[int]:
    """Store new books and return their keys in the order of the items.

    Raises BadUserInputError for too many items, and ItemsRefusedError.
    """
    check_items(items)
    books = Book.objects.bulk_create([Book(**item) for item in items])
    publish("book.created", books)
    return [book.pk for book in books]


def upsert(items: Sequence[Fields]) -> list[int]:
    """Store books or replace those with the same external ids; return their keys in order.

    Raises as `add` does.
    """
    check_items(items)
    keys = [item["external_id"] for item in items]
    # By key, so that two upserts of the same books cannot deadlock.
    rows = sorted((Book(**item) for item in items), key=external_id)
    known = Book.objects.with_external_ids(keys)
    books = Book.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["external_id"],
        update_fields=REPLACED,
    )
    publish("book.created", [book for book in books if book.external_id not in known])
    publish("book.updated", [book for book in books if book.external_id in known])
    by_key = {book.external_id: book.pk for book in books}
    return [by_key[key] for key in keys]


def delete(ids: Sequence[str]) -> list[bool]:
    """Delete books; return for each id whether its book existed.

    Raises BadUserInputError for too many ids.
    """
    check_number(ids, field="bookIds")
    keys = [primary_key(each) for each in ids]
    existing = Book.objects.locked(keys)
    Book.objects.filter(pk__in=existing).delete()
    for key in sorted(existing):
        publish_change("book.deleted", key)
    return [key in existing for key in keys]


def external_id(book: Book) -> str:
    return book.external_id or ""


def check_number(items: Sequence[Any], *, field: str) -> None:
    if len(items) > MOST_ITEMS:
        raise BadUserInputError(
            f"{field} must have at most {MOST_ITEMS:,} items.", field=field
        )


def check_items(items: Sequence[Fields]) -> None:
    """Raise as `add` does; authors and categories stay locked until the transaction ends."""
    check_number(items, field="books")
    faults = [*field_faults(items), *reference_faults(items)]
    if faults:
        raise ItemsRefusedError(sorted(faults, key=lambda fault: fault.index))


def field_faults(items: Sequence[Fields]) -> Iterable[Fault]:
    """Yield the first fault of each item in its own fields."""
    seen: set[str] = set()
    for index, item in enumerate(items):
        try:
            check(item["name"], item["page_count"])
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
        existing = model.objects.locked(keys)
        for index, item in enumerate(items):
            key = item.get(column)
            if key is not None and key not in existing:
                yield Fault(index, NotFoundError(model.__name__.lower(), field=field))


def publish(event_type: str, books: Iterable[Book]) -> None:
    for book in books:
        publish_change(
            event_type,
            book.pk,
            name=book.name,
            page_count=book.page_count,
            author_id=book.author_id,
            category_id=book.category_id,
        )
