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
        fields = ("id", "name", "description", "books")


class Author(DjangoObjectType):
    class Meta:
        model = models.Author
        fields = ("id", "first_name", "last_name", "books")

    book_count = graphene.Int()

    def resolve_book_count(self, _info: Any) -> Any:
        return self.books.count()


class Book(DjangoObjectType):
    class Meta:
        model = models.Book
        fields = ("id", "name", "page_count", "author", "category")


class BookInput(graphene.InputObjectType):
    name = graphene.String(required=True)
    page_count = graphene.Int(required=True)
    author_id = graphene.Int(required=True)
    category_id = graphene.Int()


class Query(graphene.ObjectType):
    get_all_books = graphene.List(Book)
    get_all_authors = graphene.List(Author)
    search_books = graphene.List(Book, title=graphene.String(required=True))
    get_book_by_id = graphene.Field(Book, id=graphene.ID(required=True))

    def resolve_get_all_books(self, _info: Any) -> Any:
        return models.Book.objects.all()

    def resolve_get_all_authors(self, _info: Any) -> Any:
        return models.Author.objects.all()

    def resolve_search_books(self, _info: Any, title: str) -> Any:
        return models.Book.objects.filter(name__icontains=title).order_by("name", "pk")

    def resolve_get_book_by_id(self, _info: Any, id: str) -> Any:  # noqa: A002
        return models.Book.objects.filter(pk=id).first()


class Mutation(graphene.ObjectType):
    add_book = graphene.Field(Book, book=BookInput(required=True))

    def resolve_add_book(self, _info: Any, book: Any) -> Any:
        return models.Book.objects.create(**book)


schema = graphene.Schema(query=Query, mutation=Mutation)
view = csrf_exempt(GraphQLView.as_view(schema=schema))
