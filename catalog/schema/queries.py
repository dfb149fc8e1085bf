"""The fields of Query: those of the contract in its order, then the connections."""

from __future__ import annotations

from typing import Any

import graphene
from graphql import GraphQLResolveInfo

from catalog.execution.plans import resolve_root
from catalog.execution.roots import ROOTS
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
from catalog.schema.types import Author, Book, BookConnection, Category

AuthorConnection = connection("Author", "authors", lambda: Author)
CategoryConnection = connection("Category", "categories", lambda: Category)
ID = graphene.ID(required=True, description="The id of the record.")


def resolve_rows(
    _name: str, default: Any, _root: None, info: GraphQLResolveInfo, **arguments: Any
) -> Any:
    if info.field_name not in ROOTS:
        return default  # DjangoListField then answers every row
    return resolve_root(info, arguments)


class Query(graphene.ObjectType):
    """What can be read. A record that does not exist is null."""

    class Meta:
        default_resolver = resolve_rows

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
        CategoryConnection,
        CategoryOrder,
        CategoryFilter,
        "One page of the categories.",
    )
