"""Connections that page through books, authors and categories, in addition to the contract."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import graphene
from django.db.models import QuerySet
from graphql import GraphQLResolveInfo

from catalog import models
from catalog.execution.plans import Compiler, objects_by_key
from catalog.models import TypeName
from catalog.paging import DEFAULT_PAGE, LARGEST_PAGE, Order, Page
from catalog.schema.queries import ContractQuery, resolve_rows
from catalog.schema.types import Author, Book, Category

BY_ID = Order()
BY_NAME = Order(("name", "pk"), texts=("name",))
BY_PAGES = Order(("page_count", "pk"))
BY_AUTHOR = Order(("last_name", "first_name", "pk"), texts=("last_name", "first_name"))


def order_enum(name: str, **orders: Order) -> Any:
    """Return an enum type with both directions of each order."""
    members = {
        f"{key}_{direction}": member
        for key, order in orders.items()
        for direction, member in (("ASC", order), ("DESC", order.reversed()))
    }
    # graphene calls it with None for the type, otherwise with a member.
    description = "How a list is ordered; the id decides between equals."
    return graphene.Enum(
        name,
        members,
        description=lambda member: description if member is None else None,
    )


BookOrder = order_enum("BookOrder", ID=BY_ID, NAME=BY_NAME, PAGE_COUNT=BY_PAGES)
AuthorOrder = order_enum("AuthorOrder", ID=BY_ID, NAME=BY_AUTHOR)
CategoryOrder = order_enum("CategoryOrder", ID=BY_ID, NAME=BY_NAME)


class BookFilter(graphene.InputObjectType):
    """Every condition that is given must hold."""

    title = graphene.String(description="A part of the name, letter case ignored.")
    author_id = graphene.Int(description="The id of the author.")
    category_id = graphene.Int(description="The id of the category.")
    min_page_count = graphene.Int(description="At least so many pages.")
    max_page_count = graphene.Int(description="At most so many pages.")


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

    has_next_page = graphene.Boolean(
        required=True, description="Whether there are rows behind it."
    )
    has_previous_page = graphene.Boolean(
        required=True, description="Whether there are rows before it."
    )
    start_cursor = graphene.String(description="Of its first row, for `before`.")
    end_cursor = graphene.String(description="Of its last row, for `after`.")


def nodes_of(type_name: TypeName, page: Page, info: GraphQLResolveInfo) -> list[Any]:
    objects = objects_by_key(info, type_name, info.field_nodes, page.cursors)
    return [objects[key] for key in page.cursors if key in objects]


@dataclass(frozen=True, slots=True)
class Edge:
    """A row and its cursor; the row as each response name of `node` answers it."""

    cursor: str
    nodes: dict[str, Any]


def resolve_node(edge: Edge, info: GraphQLResolveInfo) -> Any:
    return edge.nodes[str(info.path.key)]


def edges_of(type_name: TypeName, page: Page, info: GraphQLResolveInfo) -> list[Edge]:
    fields = Compiler.of(info).fields(f"{type_name}Edge", info.field_nodes)
    objects_by_name = {
        name: objects_by_key(info, type_name, field_nodes, page.cursors)
        for name, field_nodes in fields.items()
        if field_nodes[0].name.value == "node"
    }
    return [
        Edge(cursor, {name: objects[key] for name, objects in objects_by_name.items()})
        for key, cursor in page.cursors.items()
        if all(key in objects for objects in objects_by_name.values())
    ]


def connection(node_type: Any, plural: str) -> Any:
    """Return the connection type of a node type."""
    type_name = node_type.__name__
    required = graphene.NonNull

    class RowEdge(graphene.ObjectType):
        """A row and its place."""

        class Meta:
            name = f"{type_name}Edge"

        cursor = graphene.String(
            required=True, description="The place of the row, for `after` and `before`."
        )
        node = graphene.Field(
            node_type, required=True, resolver=resolve_node, description="The row."
        )

    class Connection(graphene.ObjectType):
        class Meta:
            name = f"{type_name}Connection"
            description = f"One page of {plural}."

        edges = graphene.List(
            required(RowEdge),
            required=True,
            resolver=partial(edges_of, type_name),
            description="The rows with their cursors.",
        )
        nodes = graphene.List(
            required(node_type),
            required=True,
            resolver=partial(nodes_of, type_name),
            description="The rows alone.",
        )
        page_info = graphene.Field(
            PageInfo,
            required=True,
            resolver=lambda page, _: page,
            description="What is before and behind this page.",
        )
        total_count = graphene.Int(
            required=True, description="How many there are on all pages."
        )

    return Connection


LOOKUPS = {"min_page_count": "page_count__gte", "max_page_count": "page_count__lte"}


def filter_rows(
    model: Any, *, title: str | None = None, name: str | None = None, **values: Any
) -> QuerySet[Any]:
    """Return the rows for which every condition of a filter holds; null is no condition."""
    conditions = {
        LOOKUPS.get(field, field): value
        for field, value in values.items()
        if value is not None
    }
    rows: QuerySet[Any] = model.objects.search(title or name or "")
    return rows.filter(**conditions)


def pages(
    node_type: Any, model: Any, plural: str, order_type: Any, filter_type: Any
) -> graphene.Field:
    """Return the field of Query that pages through the rows of one type."""

    def resolve(
        _: None,
        _info: GraphQLResolveInfo,
        order_by: Enum | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the contract's name
        **window: Any,
    ) -> Page:
        order = order_by.value if order_by else BY_ID
        return Page(filter_rows(model, **filter or {}), order, **window)

    size = f"At most {LARGEST_PAGE}."
    return graphene.Field(
        connection(node_type, plural),
        first=graphene.Int(
            description=f"{size} Without first and last: {DEFAULT_PAGE}."
        ),
        after=graphene.String(description="The cursor before the page."),
        last=graphene.Int(description=size),
        before=graphene.String(description="The cursor behind the page."),
        filter=filter_type(description="Which rows."),
        order_by=graphene.Argument(
            order_type, default_value=order_type.ID_ASC, description="In which order."
        ),
        description=f"One page of the {plural}.",
        resolver=resolve,
    )


class Query(ContractQuery):
    """What can be read. A record that does not exist is null."""

    class Meta:
        default_resolver = resolve_rows

    books = pages(Book, models.Book, "books", BookOrder, BookFilter)
    authors = pages(Author, models.Author, "authors", AuthorOrder, AuthorFilter)
    categories = pages(
        Category, models.Category, "categories", CategoryOrder, CategoryFilter
    )
