"""Rows of the catalogue for tests."""

from __future__ import annotations

import factory

from catalog.models import Author, Book, Category


class AuthorFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = Author

    first_name = factory.Sequence(lambda n: f"First {n}")
    last_name = factory.Sequence(lambda n: f"Last {n}")


class CategoryFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = Category

    name = factory.Sequence(lambda n: f"Category {n}")


class BookFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = Book

    name = factory.Sequence(lambda n: f"Book {n}")
    page_count = 100
    author = factory.SubFactory(AuthorFactory)
