"""strawberry-django with its query optimizer, as its documentation recommends."""

from __future__ import annotations

from typing import cast

import strawberry
import strawberry_django
from django.db.models import Count
from django.views.decorators.csrf import csrf_exempt
from strawberry.django.views import GraphQLView
from strawberry_django.optimizer import DjangoOptimizerExtension

from catalog import models

books = models.Book.objects


@strawberry_django.type(models.Category, fields=["id", "name"])
class Category: ...


@strawberry_django.type(models.Author, fields=["id", "first_name", "last_name"])
class Author:
    number: int = strawberry_django.field(name="bookCount", annotate=Count("books"))
    books: list[Book]


@strawberry_django.type(models.Book, fields=["id", "name", "page_count"])
class Book:
    author: Author
    category: Category | None


@strawberry_django.input(models.Book, fields=["name", "page_count"])
class BookInput:
    author_id: int


@strawberry.type
class Query:
    get_all_books: list[Book] = strawberry_django.field()

    @strawberry_django.field
    def get_all_authors(self) -> list[Author]:
        return cast("list[Author]", models.Author.objects.order_by("pk"))

    @strawberry_django.field
    def search_books(self, title: str) -> list[Book]:
        found = books.filter(name__icontains=title).order_by("name")
        return cast("list[Book]", found)

    @strawberry_django.field
    def get_book_by_id(self, id: strawberry.ID) -> Book | None:  # noqa: A002
        return cast("Book | None", books.filter(pk=id).first())


@strawberry.type
class Mutation:
    @strawberry_django.mutation
    def add_book(self, book: BookInput) -> Book:
        return cast("Book", books.create(**vars(book)))


schema = strawberry.Schema(Query, Mutation, extensions=[DjangoOptimizerExtension])
view = csrf_exempt(GraphQLView.as_view(schema=schema))
