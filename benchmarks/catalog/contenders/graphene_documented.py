"""graphene-django in the way of its own tutorial: DjangoObjectType and objects.all()."""

from __future__ import annotations

from typing import Any

import graphene
from django.views.decorators.csrf import csrf_exempt
from graphene_django import DjangoObjectType
from graphene_django.views import GraphQLView

from catalog import models

books, authors = models.Book.objects, models.Author.objects


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
    page_count, author_id = graphene.Int(required=True), graphene.Int(required=True)


class Query(graphene.ObjectType):
    get_all_books = graphene.List(Book, resolver=lambda *_: books.all())
    get_all_authors = graphene.List(Author, resolver=lambda *_: authors.all())
    search_books = graphene.List(Book, title=graphene.String(required=True))
    get_book_by_id = graphene.Field(Book, id=graphene.ID(required=True))

    def resolve_search_books(self, _info: Any, title: str) -> Any:
        return books.filter(name__icontains=title).order_by("name")

    def resolve_get_book_by_id(self, _info: Any, **key: Any) -> Any:
        return books.filter(**key).first()


class Mutation(graphene.ObjectType):
    add_book = graphene.Field(Book, book=BookInput(required=True))

    def resolve_add_book(self, _info: Any, book: Any) -> Any:
        return books.create(**book)


view = csrf_exempt(GraphQLView.as_view(schema=graphene.Schema(Query, Mutation)))
