"""The fields of Query, in the contract's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphene
from graphql import GraphQLResolveInfo

from catalog.execution.plans import rows_of
from catalog.execution.roots import ROOTS
from catalog.schema.types import Author, Book, Category


def resolver(name: str) -> Callable[..., Any]:
    """Return the resolver of a field that answers rows."""
    root = ROOTS[name]

    def resolve(_: None, info: GraphQLResolveInfo, **arguments: Any) -> Any:
        return rows_of(root, info, arguments)

    return resolve


class Query(graphene.ObjectType):
    """What can be read. A record that does not exist is null."""

    get_book_by_name = graphene.Field(
        Book,
        name=graphene.String(),
        description="The oldest book of exactly this name, letter case ignored.",
        resolver=resolver("getBookByName"),
    )
    get_book_by_id = graphene.Field(
        Book, id=graphene.ID(required=True), resolver=resolver("getBookById")
    )
    get_all_books = graphene.List(
        Book, description="Every book, by id.", resolver=resolver("getAllBooks")
    )
    get_author_by_id = graphene.Field(
        Author, id=graphene.Int(), resolver=resolver("getAuthorById")
    )
    get_all_authors = graphene.List(
        Author, description="Every author, by id.", resolver=resolver("getAllAuthors")
    )
    get_all_categories = graphene.List(
        Category,
        description="Every category, by id.",
        resolver=resolver("getAllCategories"),
    )
    get_category_by_id = graphene.Field(
        Category, id=graphene.ID(required=True), resolver=resolver("getCategoryById")
    )
    search_books = graphene.List(
        Book,
        title=graphene.String(required=True),
        description="The books whose name holds this text, letter case ignored, by name.",
        resolver=resolver("searchBooks"),
    )
