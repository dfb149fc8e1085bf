"""graphene-django in the way of its own tutorial: DjangoObjectType and objects.all()."""

from __future__ import annotations

from typing import Any

import graphene
from django.views.decorators.csrf import csrf_exempt
from graphene_django import DjangoObjectType
from graphene_django.views import GraphQLView

from catalog import models


class Category(DjangoObjectType):
    class Meta:
        model = models.Category
        fields = ("id", "name")


class Author(DjangoObjectType):
    class Meta:
        model = models.Author
        fields = ("id", "first_name", "last_name", "books")

    book_count = graphene.Int(source="book_count")


class Book(DjangoObjectType):
    class Meta:
        model = models.Book
        fields = ("id", "name", "page_count", "author", "category")


class BookInput(graphene.InputObjectType):
    name = graphene.String(required=True)
    page_count = graphene.Int(required=True)
    author_id = graphene.Int(required=True)


class Query(graphene.ObjectType):
    get_all_books = graphene.List(Book)
    get_all_authors = graphene.List(Author)
    search_books = graphene.List(Book, title=graphene.String(required=True))
    get_book_by_id = graphene.Field(Book, id=graphene.ID(required=True))

    resolve_get_all_books = lambda *_: models.Book.objects.all()  # noqa: E731
    resolve_get_all_authors = lambda *_: models.Author.objects.all()  # noqa: E731

    def resolve_search_books(self, _info: Any, title: str) -> Any:
        return models.Book.objects.filter(name__icontains=title).order_by("name")

    resolve_get_book_by_id = lambda *_, **key: models.Book.objects.filter(**key).first()  # noqa: E731


class Mutation(graphene.ObjectType):
    add_book = graphene.Field(Book, book=BookInput(required=True))
    resolve_add_book = lambda *_, book: models.Book.objects.create(**book)  # noqa: E731


view = csrf_exempt(GraphQLView.as_view(schema=graphene.Schema(Query, Mutation)))
