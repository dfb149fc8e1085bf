"""The fields of Query: those of the contract in its order, then the connections."""

from __future__ import annotations

from typing import Any

import graphene
from django.conf import settings

from catalog import models
from catalog.execution.fields import planned
from catalog.execution.readings import PageOfRows, Rows
from catalog.execution.statements import Selection
from catalog.identifiers import LARGEST_32, LARGEST_64, primary_key
from catalog.schema.connections import (
    AuthorFilter,
    AuthorOrder,
    BookFilter,
    BookOrder,
    CategoryFilter,
    CategoryOrder,
    connection,
    page_field,
)
from catalog.schema.inputs import ID
from catalog.schema.types import Author, Book, BookConnection, Category
from catalog.text_checks import can_occur, folded

AuthorConnection = connection("Author", "authors", lambda: Author)
CategoryConnection = connection("Category", "categories", lambda: Category)


def every(type_name: models.TypeName) -> Rows:
    rows = models.MODELS[type_name].objects
    return Rows(type_name, Selection(lambda _: rows.order_by("pk")))


def one(type_name: models.TypeName, value: Any, largest: int = LARGEST_32) -> Rows:
    rows = models.MODELS[type_name].objects
    key = primary_key(value, largest=largest)
    return Rows(type_name, Selection(lambda key: rows.filter(pk=key).order_by(), key))


def by_title(title: str) -> Selection:
    """Select books by a part of their name, in no order.

    A search that finds more rows than the budget allows stops there and is refused, so that
    sorting would be wasted.
    """
    books = models.Book.objects.order_by()
    if not title:
        return Selection(lambda _: books, shape="everything")
    if not models.is_indexed(title):
        return Selection(
            lambda term: books.filter(books.containing(term)), folded(title)
        )
    enough = settings.CATALOG_ROW_BUDGET + 1
    return Selection(
        lambda term: books.filter(books.matching(term, at_most=enough)),
        books.term(title),
        shape=enough,
    )


class Query(graphene.ObjectType):
    """What can be read. A record that does not exist is null."""

    get_book_by_name = graphene.Field(
        Book,
        name=graphene.String(description="The whole name."),
        description="The oldest book of exactly this name, letter case ignored.",
    )
    get_book_by_id = graphene.Field(Book, id=ID, description="One book.")
    get_all_books = graphene.List(Book, description="Every book, by id.")
    get_author_by_id = graphene.Field(
        Author,
        id=graphene.Int(description="The id of the author."),
        description="One author.",
    )
    get_all_authors = graphene.List(Author, description="Every author, by id.")
    get_all_categories = graphene.List(Category, description="Every category, by id.")
    get_category_by_id = graphene.Field(Category, id=ID, description="One category.")
    search_books = graphene.List(
        Book,
        title=graphene.String(required=True, description="A part of the name."),
        description="The books whose name holds this text, letter case ignored, by name.",
    )

    books = page_field(BookConnection, BookOrder, BookFilter, "One page of the books.")
    authors = page_field(
        AuthorConnection, AuthorOrder, AuthorFilter, "One page of the authors."
    )
    categories = page_field(
        CategoryConnection, CategoryOrder, CategoryFilter, "One page of the categories."
    )

    @planned
    def resolve_get_book_by_name(_root, _info: object, name: str | None = None) -> Any:
        if name is None or not can_occur(name):
            return None
        return Rows("Book", Selection(models.Book.objects.named, folded(name)))

    @planned
    def resolve_get_book_by_id(_root, _info: object, id: str) -> Rows:
        return one("Book", id, LARGEST_64)

    @planned
    def resolve_get_all_books(_root, _info: object) -> Rows:
        return every("Book")

    @planned
    def resolve_get_author_by_id(_root, _info: object, id: int | None = None) -> Rows:
        return one("Author", id)

    @planned
    def resolve_get_all_authors(_root, _info: object) -> Rows:
        return every("Author")

    @planned
    def resolve_get_all_categories(_root, _info: object) -> Rows:
        return every("Category")

    @planned
    def resolve_get_category_by_id(_root, _info: object, id: str) -> Rows:
        return one("Category", id)

    @planned
    def resolve_search_books(_root, _info: object, title: str) -> Any:
        if not can_occur(title):
            return []
        return Rows("Book", by_title(title), sort=("name", "pk"))

    @planned
    def resolve_books(_root, _info: object, **arguments: Any) -> PageOfRows:
        return PageOfRows("Book", arguments)

    @planned
    def resolve_authors(_root, _info: object, **arguments: Any) -> PageOfRows:
        return PageOfRows("Author", arguments)

    @planned
    def resolve_categories(_root, _info: object, **arguments: Any) -> PageOfRows:
        return PageOfRows("Category", arguments)
