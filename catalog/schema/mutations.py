"""The fields of Mutation: each authorises, changes rows and reads its answer in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import graphene
from django.db import transaction
from graphql import GraphQLResolveInfo

from catalog import authors, books, categories
from catalog.execution.plans import objects_by_key
from catalog.models import TypeName
from catalog.schema.inputs import AuthorInput, BookInput, CategoryInput
from catalog.schema.types import Author, Book, Category

T = TypeVar("T")
ID = graphene.Argument(graphene.ID, name="id", required=True)


def change(resolve: Callable[..., T]) -> Callable[..., T]:
    """Run a resolver of Mutation in one transaction, if the request may change anything."""

    @wraps(resolve)
    def run(_: None, info: GraphQLResolveInfo, **arguments: Any) -> T:
        info.context.authorize_change()
        with transaction.atomic():
            return resolve(info, **arguments)

    return run


def answer(info: GraphQLResolveInfo, type_name: TypeName, key: int) -> Any:
    """Read a changed row with everything that the selection names."""
    return objects_by_key(info, type_name, info.field_nodes, [key])[key]


def draft(book: Any) -> books.Draft:
    return books.Draft(
        name=book["name"],
        page_count=book["page_count"],
        author_id=book["author_id"],
        category_id=book.get("category_id"),
    )


@change
def add_book(info: GraphQLResolveInfo, book: Any) -> Any:
    return answer(info, "Book", books.add(draft(book)))


@change
def update_book(info: GraphQLResolveInfo, book_id: str, book: Any) -> Any:
    return answer(info, "Book", books.update(book_id, draft(book)))


@change
def delete_book(_info: GraphQLResolveInfo, book_id: str) -> bool:
    return books.delete(book_id)


@change
def add_author(info: GraphQLResolveInfo, author: Any) -> Any:
    return answer(info, "Author", authors.add(**author))


@change
def update_author(info: GraphQLResolveInfo, author_id: str, author: Any) -> Any:
    return answer(info, "Author", authors.update(author_id, **author))


@change
def delete_author(_info: GraphQLResolveInfo, author_id: str) -> bool:
    return authors.delete(author_id)


@change
def add_category(info: GraphQLResolveInfo, category: Any) -> Any:
    return answer(info, "Category", categories.add(**category))


class Mutation(graphene.ObjectType):
    """What can be changed."""

    add_book = graphene.Field(Book, book=BookInput(required=True), resolver=add_book)
    update_book = graphene.Field(
        Book, book_id=ID, book=BookInput(required=True), resolver=update_book
    )
    delete_book = graphene.Field(
        graphene.Boolean,
        book_id=ID,
        description="False when there is no such book.",
        resolver=delete_book,
    )
    add_author = graphene.Field(
        Author, author=AuthorInput(required=True), resolver=add_author
    )
    update_author = graphene.Field(
        Author, author_id=ID, author=AuthorInput(required=True), resolver=update_author
    )
    delete_author = graphene.Field(
        graphene.Boolean,
        author_id=ID,
        description="False when there is no such author; an error while there are books.",
        resolver=delete_author,
    )
    add_category = graphene.Field(
        Category, category=CategoryInput(required=True), resolver=add_category
    )
