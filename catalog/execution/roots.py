"""The fields of Query that answer rows: which rows each means. Both executors ask here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.conf import settings
from django.db.models import QuerySet

from catalog.identifiers import LARGEST_32, primary_key
from catalog.models import Author, Book, Category

TypeName = Literal["Book", "Author", "Category"]
Arguments = Mapping[str, Any]
Rows = Callable[[Arguments], QuerySet[Any]]


@dataclass(frozen=True, slots=True)
class Root:
    """A field of Query: what it answers and the rows behind it."""

    type_name: TypeName
    rows: Rows
    many: bool = False
    by_name: bool = False  # in code-point order of the name, then by id


def book_by_name(arguments: Arguments) -> QuerySet[Book]:
    name = arguments.get("name")
    return Book.objects.none() if name is None else Book.objects.named(name)


def book_by_id(arguments: Arguments) -> QuerySet[Book]:
    return Book.objects.filter(pk=primary_key(arguments["id"]))


def author_by_id(arguments: Arguments) -> QuerySet[Author]:
    key = primary_key(arguments.get("id"), largest=LARGEST_32)
    return Author.objects.filter(pk=key)


def category_by_id(arguments: Arguments) -> QuerySet[Category]:
    key = primary_key(arguments["id"], largest=LARGEST_32)
    return Category.objects.filter(pk=key)


def found_books(arguments: Arguments) -> QuerySet[Book]:
    # Unordered, so that a search for half the catalogue ends at the budget's last row
    # instead of sorting what is refused anyway.
    enough = settings.CATALOG_ROW_BUDGET + 1
    return Book.objects.search(arguments["title"], at_most=enough).order_by()


ROOTS: dict[str, Root] = {
    "getBookByName": Root("Book", book_by_name),
    "getBookById": Root("Book", book_by_id),
    "getAllBooks": Root("Book", lambda _: Book.objects.order_by("pk"), many=True),
    "getAuthorById": Root("Author", author_by_id),
    "getAllAuthors": Root("Author", lambda _: Author.objects.order_by("pk"), many=True),
    "getAllCategories": Root(
        "Category", lambda _: Category.objects.order_by("pk"), many=True
    ),
    "getCategoryById": Root("Category", category_by_id),
    "searchBooks": Root("Book", found_books, many=True, by_name=True),
}
