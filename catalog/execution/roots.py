"""The fields of Query that answer rows: which rows each means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from catalog.conf import option
from catalog.execution.statements import Selection
from catalog.identifiers import LARGEST_32, LARGEST_64, primary_key
from catalog.models import Author, Book, Category, TypeName, is_indexed
from catalog.text import NUL, folded

Arguments = Mapping[str, Any]
Select = Callable[[Arguments], Selection | None]


@dataclass(frozen=True, slots=True)
class Root:
    """A field of Query: what it answers and the rows behind it; None means no rows."""

    type_name: TypeName
    select: Select
    many: bool = False
    by_name: bool = False  # in code-point order of the name, then by id


def everything(model: type[Book | Author | Category]) -> Select:
    selection = Selection(lambda _: model.objects.order_by("pk"))
    return lambda _: selection


def by_key(model: type[Book | Author | Category], largest: int) -> Select:
    def build(key: int) -> QuerySet[Any]:
        return model.objects.filter(pk=key).order_by()

    def select(arguments: Arguments) -> Selection:
        return Selection(build, primary_key(arguments.get("id"), largest=largest))

    return select


def book_by_name(arguments: Arguments) -> Selection | None:
    name = arguments.get("name")
    if name is None or NUL in name:
        return None
    return Selection(Book.objects.named, folded(name))


def found_books(arguments: Arguments) -> Selection | None:
    """Select by the title.

    Unordered, so that a search for half the catalogue ends at the budget's last row instead
    of sorting what is refused anyway.
    """
    title, enough = arguments["title"], option("CATALOG_ROW_BUDGET") + 1
    if NUL in title:
        return None
    if not title:
        return Selection(lambda _: Book.objects.order_by(), shape="everything")
    indexed = is_indexed(title)

    def build(term: str) -> QuerySet[Book]:
        found = Book.objects.matching(term, indexed=indexed, at_most=enough)
        return found.order_by()

    return Selection(build, Book.objects.all().term(title), (indexed, enough))


ROOTS: dict[str, Root] = {
    "getBookByName": Root("Book", book_by_name),
    "getBookById": Root("Book", by_key(Book, LARGEST_64)),
    "getAllBooks": Root("Book", everything(Book), many=True),
    "getAuthorById": Root("Author", by_key(Author, LARGEST_32)),
    "getAllAuthors": Root("Author", everything(Author), many=True),
    "getAllCategories": Root("Category", everything(Category), many=True),
    "getCategoryById": Root("Category", by_key(Category, LARGEST_32)),
    "searchBooks": Root("Book", found_books, many=True, by_name=True),
}
