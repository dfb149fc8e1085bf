"""The fields of Query: those of the contract in its order, then pages of books."""

from __future__ import annotations

from typing import Any

import graphene
from django.db.models import QuerySet

from catalog import models
from catalog.errors import BadUserInputError
from catalog.execution.readings import Reading, kept
from catalog.schema.types import Author, Book, Category
from catalog.texts import ABSENT, LARGEST_64, can_occur, folded, primary_key

LARGEST_PAGE = 1_000

all_books = kept(models.Book.objects.all)
all_authors = kept(models.Author.objects.all)
all_categories = kept(models.Category.objects.all)
book_by_key = kept(lambda key: models.Book.objects.filter(pk=key).order_by())
author_by_key = kept(lambda key: models.Author.objects.filter(pk=key).order_by())
category_by_key = kept(lambda key: models.Category.objects.filter(pk=key).order_by())
books_named = kept(lambda name: models.Book.objects.filter(name_folded=name))
books_with = kept(
    lambda part: models.Book.objects.search(part).order_by(), sort=("name", "pk")
)


@kept
def page_of_books(title: Any = None, **conditions: Any) -> QuerySet[models.Book]:
    books = models.Book.objects.filter(**conditions)
    return books if title is None else books.search(title)


class Query(graphene.ObjectType):
    """What can be read. A record that does not exist is null."""

    get_book_by_name = graphene.Field(
        Book,
        name=graphene.String(description="The whole name."),
        description="The oldest book of exactly this name, letter case ignored.",
    )
    get_book_by_id = graphene.Field(
        Book,
        id=graphene.ID(required=True, description="The id of the record."),
        description="One book.",
    )
    get_all_books = graphene.List(Book, description="Every book, by id.")
    get_author_by_id = graphene.Field(
        Author,
        id=graphene.Int(description="The id of the author."),
        description="One author.",
    )
    get_all_authors = graphene.List(Author, description="Every author, by id.")
    get_all_categories = graphene.List(Category, description="Every category, by id.")
    get_category_by_id = graphene.Field(
        Category,
        id=graphene.ID(required=True, description="The id of the record."),
        description="One category.",
    )
    search_books = graphene.List(
        Book,
        title=graphene.String(required=True, description="A part of the name."),
        description="The books whose name holds this text, letter case ignored, by name.",
    )
    books = graphene.List(
        Book,
        first=graphene.Int(
            default_value=100, description=f"How many: at most {LARGEST_PAGE:,}."
        ),
        after=graphene.ID(description="The id of the last book of the page before."),
        title=graphene.String(description="A part of the name, letter case ignored."),
        author_id=graphene.Int(description="The id of the author."),
        category_id=graphene.Int(description="The id of the category."),
        description="One page of the books, by id. All conditions hold; null is none.",
    )

    def resolve_get_book_by_name(_root, _info: object, name: str | None = None) -> Any:
        if name is None or not can_occur(name):
            return None
        return books_named(name=folded(name))

    def resolve_get_book_by_id(_root, _info: object, id: str) -> Reading:
        return book_by_key(key=primary_key(id, LARGEST_64))

    def resolve_get_all_books(_root, _info: object) -> Reading:
        return all_books()

    def resolve_get_author_by_id(_root, _info: object, id: int | None = None) -> Any:
        return None if id is None else author_by_key(key=id)

    def resolve_get_all_authors(_root, _info: object) -> Reading:
        return all_authors()

    def resolve_get_all_categories(_root, _info: object) -> Reading:
        return all_categories()

    def resolve_get_category_by_id(_root, _info: object, id: str) -> Reading:
        return category_by_key(key=primary_key(id))

    def resolve_search_books(_root, _info: object, title: str) -> Any:
        return books_with(part=folded(title)) if can_occur(title) else []

    def resolve_books(
        _root,
        _info: object,
        first: int | None = None,
        after: str | None = None,
        title: str | None = None,
        author_id: int | None = None,
        category_id: int | None = None,
    ) -> Any:
        if first is None or not 0 <= first <= LARGEST_PAGE:
            message = f"first must be from 0 to {LARGEST_PAGE:,}."
            raise BadUserInputError(message, field="first")
        key = None if after is None else primary_key(after, LARGEST_64)
        if key == ABSENT or (title is not None and not can_occur(title)):
            return []
        conditions = {
            "pk__gt": key,
            "title": None if title is None else folded(title),
            "author": author_id,
            "category": category_id,
        }
        given = {name: each for name, each in conditions.items() if each is not None}
        return page_of_books(first, **given)
