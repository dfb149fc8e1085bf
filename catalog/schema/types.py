"""The output types, field for field as the contract lists them: every field may be null."""

from __future__ import annotations

from typing import Any

import graphene
from graphql import GraphQLResolveInfo


def answered(
    _name: str, _default: Any, row: dict[str, Any], info: GraphQLResolveInfo
) -> Any:
    """Take a field from an object that a plan's level has built: it has the answer's keys."""
    return row[str(info.path.key)]


class Book(graphene.ObjectType):
    """A book, with its author and, where it has one, its category."""

    class Meta:
        default_resolver = answered

    id = graphene.ID()
    name = graphene.String()
    page_count = graphene.Int()
    author = graphene.Field(lambda: Author)
    category = graphene.Field(lambda: Category)


class Author(graphene.ObjectType):
    """Who wrote a book."""

    class Meta:
        default_resolver = answered

    id = graphene.ID()
    first_name = graphene.String()
    last_name = graphene.String()
    book_count = graphene.Int(description="How many books this author has.")
    books = graphene.List(Book, description="The author's books, the oldest first.")


class Category(graphene.ObjectType):
    """What kind of book a book is."""

    class Meta:
        default_resolver = answered

    id = graphene.ID()
    name = graphene.String()
    description = graphene.String()
    books = graphene.List(Book, description="Its books, the oldest first.")
