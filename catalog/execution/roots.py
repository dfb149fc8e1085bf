"""The fields of Query that answer rows, and the rows that each selects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from catalog.conf import option
from catalog.execution.statements import Selection
from catalog.identifiers import LARGEST_32, LARGEST_64, primary_key
from catalog.models import MODELS, Book, TypeName, is_indexed
from catalog.text_checks import can_occur, folded

Arguments = Mapping[str, Any]
Select = Callable[[Arguments], Selection | None]


@dataclass(frozen=True, slots=True)
class Root:
    """A field of Query: the type of its rows, and those it selects (None: no rows).

    Without a selection it is a connection, whose arguments select the rows.
    """

    type_name: TypeName
    select: Select | None = None
    many: bool = False
    by_name: bool = False  # in code-point order of the name, then by id


def all_rows(type_name: TypeName) -> Root:
    selection = Selection(lambda _: MODELS[type_name].objects.order_by("pk"))
    return Root(type_name, lambda _: selection, many=True)


def row_by_key(type_name: TypeName, largest: int) -> Root:
    def build(key: int) -> QuerySet[Any]:
        return MODELS[type_name].objects.filter(pk=key).order_by()

    def select(arguments: Arguments) -> Selection:
        return Selection(build, primary_key(arguments.get("id"), largest=largest))

    return Root(type_name, select)


def select_by_name(arguments: Arguments) -> Selection | None:
    name = arguments.get("name")
    if name is None or not can_occur(name):
        return None
    return Selection(Book.objects.named, folded(name))


def select_by_title(arguments: Arguments) -> Selection | None:
    """Select books by title, in no order.

    A search that finds more rows than the budget allows stops there and is refused, so that
    sorting would be wasted.
    """
    title, enough = arguments["title"], option("CATALOG_ROW_BUDGET") + 1
    books = Book.objects.all()
    if not can_occur(title):
        return None
    if not title:
        return Selection(lambda _: books.order_by(), shape="everything")

    def build(term: str) -> QuerySet[Book]:
        if indexed:
            return books.filter(books.matching(term, at_most=enough)).order_by()
        return books.filter(books.containing(term)).order_by()

    indexed = is_indexed(title)
    term = books.term(title) if indexed else folded(title)
    return Selection(build, term, shape=(indexed, enough))


ROOTS: dict[str, Root] = {
    "getBookByName": Root("Book", select_by_name),
    "getBookById": row_by_key("Book", LARGEST_64),
    "getAllBooks": all_rows("Book"),
    "getAuthorById": row_by_key("Author", LARGEST_32),
    "getAllAuthors": all_rows("Author"),
    "getAllCategories": all_rows("Category"),
    "getCategoryById": row_by_key("Category", LARGEST_32),
    "searchBooks": Root("Book", select_by_title, many=True, by_name=True),
    "books": Root("Book"),
    "authors": Root("Author"),
    "categories": Root("Category"),
}
