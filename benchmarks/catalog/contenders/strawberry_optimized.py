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


@strawberry_django.type(models.Category)
class Category:
    id: strawberry.ID
    name: strawberry.auto
    description: strawberry.auto


@strawberry_django.type(models.Author)
class Author:
    id: strawberry.ID
    first_name: strawberry.auto
    last_name: strawberry.auto
    book_count: int = strawberry_django.field(annotate=Count("books"))
    books: list[Book]


@strawberry_django.type(models.Book)
class Book:
    id: strawberry.ID
    name: strawberry.auto
    page_count: strawberry.auto
    author: Author
    category: Category | None


@strawberry.input
class BookInput:
    name: str
    page_count: int
    author_id: int
    category_id: int | None = None


@strawberry.type
class Query:
    get_all_books: list[Book] = strawberry_django.field()

    @strawberry_django.field
    def get_all_authors(self) -> list[Author]:
        return cast("list[Author]", models.Author.objects.order_by("pk"))

    @strawberry_django.field
    def search_books(self, title: str) -> list[Book]:
        rows = models.Book.objects.filter(name__icontains=title)
        return cast("list[Book]", rows.order_by("name", "pk"))

    @strawberry_django.field
    def get_book_by_id(self, id: strawberry.ID) -> Book | None:  # noqa: A002
        return cast("Book | None", models.Book.objects.filter(pk=id).first())


@strawberry.type
class Mutation:
    @strawberry_django.mutation
    def add_book(self, book: BookInput) -> Book:
        return cast("Book", models.Book.objects.create(**vars(book)))


schema = strawberry.Schema(
    query=Query, mutation=Mutation, extensions=[DjangoOptimizerExtension]
)
view = csrf_exempt(GraphQLView.as_view(schema=schema))
