"""Connections to page through books, authors and categories; beside the contract, after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import graphene
from django.db.models import QuerySet
from graphql import GraphQLResolveInfo

from catalog import models
from catalog.execution.plans import objects_by_key
from catalog.execution.selections import Selections
from catalog.identifiers import LARGEST_32, primary_key
from catalog.paging import DEFAULT_PAGE, LARGEST_PAGE, Order, Page, Window
from catalog.schema.types import Author, Book, Category

BY_NAME = Order(("name", "pk"), texts=("name",))
BY_PAGES = Order(("page_count", "pk"))
BY_AUTHOR = Order(("last_name", "first_name", "pk"), texts=("last_name", "first_name"))
BY_ID = Order()


class BookOrder(Enum):
    ID_ASC = BY_ID
    ID_DESC = BY_ID.reversed()
    NAME_ASC = BY_NAME
    NAME_DESC = BY_NAME.reversed()
    PAGE_COUNT_ASC = BY_PAGES
    PAGE_COUNT_DESC = BY_PAGES.reversed()


class AuthorOrder(Enum):
    ID_ASC = BY_ID
    ID_DESC = BY_ID.reversed()
    NAME_ASC = BY_AUTHOR
    NAME_DESC = BY_AUTHOR.reversed()


class CategoryOrder(Enum):
    ID_ASC = BY_ID
    ID_DESC = BY_ID.reversed()
    NAME_ASC = BY_NAME
    NAME_DESC = BY_NAME.reversed()


class BookFilter(graphene.InputObjectType):
    """Every condition that is given must hold."""

    title = graphene.String(description="A part of the name, letter case ignored.")
    author_id = graphene.Int()
    category_id = graphene.Int()
    min_page_count = graphene.Int()
    max_page_count = graphene.Int()


class AuthorFilter(graphene.InputObjectType):
    """Every condition that is given must hold."""

    name = graphene.String(
        description='A part of "first name last name", letter case ignored.'
    )


class CategoryFilter(graphene.InputObjectType):
    """Every condition that is given must hold."""

    name = graphene.String(description="A part of the name, letter case ignored.")


class PageInfo(graphene.ObjectType):
    """Where a page lies."""

    has_next_page = graphene.Boolean(required=True)
    has_previous_page = graphene.Boolean(required=True)
    start_cursor = graphene.String()
    end_cursor = graphene.String()

    @staticmethod
    def resolve_has_next_page(page: Page, _info: Any) -> bool:
        return page.has_next

    @staticmethod
    def resolve_has_previous_page(page: Page, _info: Any) -> bool:
        return page.has_previous

    @staticmethod
    def resolve_start_cursor(page: Page, _info: Any) -> str | None:
        return next(iter(page.cursors.values()), None)

    @staticmethod
    def resolve_end_cursor(page: Page, _info: Any) -> str | None:
        return next(reversed(page.cursors.values()), None)


def nodes(
    type_name: models.TypeName, page: Page, info: GraphQLResolveInfo
) -> list[Any]:
    found = objects_by_key(info, type_name, info.field_nodes, page.cursors)
    return [found[key] for key in page.cursors if key in found]


@dataclass(frozen=True, slots=True)
class Edge:
    """A row and its place; the row as each response name of `node` answers it."""

    cursor: str
    nodes: dict[str, Any]

    @staticmethod
    def node(edge: Edge, info: GraphQLResolveInfo) -> Any:
        return edge.nodes[str(info.path.key)]


def edges(
    type_name: models.TypeName, page: Page, info: GraphQLResolveInfo
) -> list[Edge]:
    below = Selections.of(info).below(f"{type_name}Edge", info.field_nodes)
    found = {
        name: objects_by_key(info, type_name, nodes, page.cursors)
        for name, nodes in below.items()
        if nodes[0].name.value == "node"
    }
    return [
        Edge(cursor, {name: objects[key] for name, objects in found.items()})
        for key, cursor in page.cursors.items()
        if all(key in objects for objects in found.values())
    ]


def connection(node: Any, plural: str) -> Any:
    """Return the connection type of a node type."""
    type_name = node.__name__
    edge = type(
        f"{type_name}Edge",
        (graphene.ObjectType,),
        {
            "__doc__": "A row and its place.",
            "cursor": graphene.String(required=True),
            "node": graphene.Field(node, required=True, resolver=Edge.node),
        },
    )
    required = graphene.NonNull
    return type(
        f"{type_name}Connection",
        (graphene.ObjectType,),
        {
            "__doc__": f"One page of {plural}.",
            "edges": graphene.List(
                required(edge), required=True, resolver=partial(edges, type_name)
            ),
            "nodes": graphene.List(
                required(node), required=True, resolver=partial(nodes, type_name)
            ),
            "page_info": graphene.Field(
                PageInfo, required=True, resolver=lambda page, _: page
            ),
            "total_count": graphene.Int(
                required=True,
                description="How many there are on all pages.",
                resolver=lambda page, _: page.count(),
            ),
        },
    )


def filtered_books(given: dict[str, Any]) -> QuerySet[models.Book]:
    books: QuerySet[models.Book] = models.Book.objects.search(given.get("title") or "")
    for owner in ("author_id", "category_id"):
        if given.get(owner) is not None:
            key = primary_key(given[owner], largest=LARGEST_32)
            books = books.filter(**{owner: key})
    for bound, lookup in (("min_page_count", "gte"), ("max_page_count", "lte")):
        if given.get(bound) is not None:
            books = books.filter(**{f"page_count__{lookup}": given[bound]})
    return books


def filtered_authors(given: dict[str, Any]) -> QuerySet[models.Author]:
    return models.Author.objects.containing(given.get("name") or "")


def filtered_categories(given: dict[str, Any]) -> QuerySet[models.Category]:
    return models.Category.objects.containing(given.get("name") or "")


def described(value: Enum | None) -> str | None:
    """Describe an order's type; its values speak for themselves."""
    return (
        "How a list is ordered; the id decides between equals."
        if value is None
        else None
    )


def pages(
    node: Any,
    plural: str,
    order: type[Enum],
    conditions: Any,
    rows: Callable[[dict[str, Any]], QuerySet[Any]],
) -> graphene.Field:
    """Return the field of Query that pages through the rows of one type."""

    def resolve(_: None, _info: GraphQLResolveInfo, **given: Any) -> Page:
        chosen = given["order_by"].value if given.get("order_by") else BY_ID
        window = Window(
            chosen,
            **{key: given.get(key) for key in ("first", "after", "last", "before")},
        )
        return Page(rows(given.get("filter") or {}), window)

    size = f"At most {LARGEST_PAGE}."
    return graphene.Field(
        connection(node, plural),
        first=graphene.Int(
            description=f"{size} Without first and last: {DEFAULT_PAGE}."
        ),
        after=graphene.String(),
        last=graphene.Int(description=size),
        before=graphene.String(),
        filter=conditions(),
        order_by=graphene.Argument(
            graphene.Enum.from_enum(order, description=described),
            default_value=order["ID_ASC"],
        ),
        description=f"One page of the {plural}.",
        resolver=resolve,
    )


class Connections(graphene.ObjectType):
    """The fields of Query beside the contract."""

    books = pages(Book, "books", BookOrder, BookFilter, filtered_books)
    authors = pages(Author, "authors", AuthorOrder, AuthorFilter, filtered_authors)
    categories = pages(
        Category, "categories", CategoryOrder, CategoryFilter, filtered_categories
    )
