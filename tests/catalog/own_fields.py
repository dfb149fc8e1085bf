"""The catalogue's schema with fields as users of graphene-django add them."""

from __future__ import annotations

from typing import Any

import graphene

from catalog import models
from catalog.execution.readings import kept
from catalog.schema.types import RowType

books_of_names = kept(
    lambda names: models.Book.objects.filter(name_folded__contains=names)
)


class Book(RowType):
    class Meta:
        model = models.Book
        skip_registry = True

    id = graphene.ID()
    name = graphene.NonNull(graphene.String)
    page_count = graphene.String()  # another type than that of the column
    author = graphene.NonNull(lambda: Author)
    category = graphene.Field(lambda: Category)
    loud_name = graphene.String(mark=graphene.String(default_value="!"))
    others = graphene.List(lambda: Book)

    def resolve_loud_name(book: models.Book, _info: object, mark: str) -> str:
        return f"{book.name.upper()}{mark}"

    def resolve_others(book: models.Book, _info: object) -> Any:
        return book.author.books.exclude(pk=book.pk)


class Author(RowType):
    class Meta:
        model = models.Author
        skip_registry = True

    id = graphene.ID()
    first_name = graphene.String()
    book_count = graphene.NonNull(graphene.Int)
    books = graphene.NonNull(graphene.List(graphene.NonNull(Book)))
    full_name = graphene.String()  # no column
    last_book = graphene.Field(Book)

    def resolve_full_name(author: models.Author, _info: object) -> str:
        return str(author)

    def resolve_last_book(author: models.Author, _info: object) -> Any:
        return author.books.last()


class Category(RowType):
    class Meta:
        model = models.Category
        skip_registry = True

    name = graphene.String()
    description = graphene.String()
    books = graphene.List(Book)
    authors = graphene.List(Author)

    def resolve_authors(category: models.Category, _info: object) -> Any:
        return models.Author.objects.filter(books__category=category).distinct()


class Query(graphene.ObjectType):
    all_books = graphene.NonNull(graphene.List(Book))
    some_books = graphene.List(Book, name=graphene.String(required=True))
    first_author = graphene.Field(Author)
    instances = graphene.List(Author)
    all_categories = graphene.List(Category)

    def resolve_all_books(_root, _info: object) -> Any:
        return models.Book.objects.order_by("-name").prefetch_related("author")

    def resolve_some_books(_root, _info: object, name: str) -> Any:
        return books_of_names(names=name)

    def resolve_first_author(_root, _info: object) -> Any:
        return models.Author.objects.first()

    def resolve_instances(_root, _info: object) -> Any:
        return list(models.Author.objects.all())

    def resolve_all_categories(_root, _info: object) -> Any:
        return models.Category.objects.all()[:1]


class Rename(graphene.Mutation):
    Output = Author

    class Arguments:
        id = graphene.Int(required=True)

    def mutate(_root, _info: object, id: int) -> Any:
        author = models.Author.objects.get(pk=id)
        author.first_name = "Renamed"
        author.save()
        return author


class Mutation(graphene.ObjectType):
    rename = Rename.Field()


schema = graphene.Schema(query=Query, mutation=Mutation)
