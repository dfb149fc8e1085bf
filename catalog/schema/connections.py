"""Connections that page through rows: their types, filters, orders and arguments.

`catalog/execution/connections.py` answers them, at the root and below an owner alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphene

from catalog.execution.plans import resolve_response_name
from catalog.paging import DEFAULT_PAGE, LARGEST_PAGE, Order


def order_enum(name: str, **orders: Order) -> Any:
    """Return an enum type with both directions of each order, and the relevance."""
    members = {
        f"{key}_{direction}": member
        for key, order in orders.items()
        for direction, member in (("ASC", order), ("DESC", order.reversed()))
    }
    members["RELEVANCE"] = Order.by("relevance", "name_folded")
    # graphene calls `get` with None for the type, otherwise with a member.
    descriptions = {
        None: "How a list is ordered; the id decides between equals.",
        "RELEVANCE": (
            "How well a row fits `title` or `name` in the filter: first its whole name, "
            "then the beginning, then that of a word, then the rest. Equals by name."
        ),
    }
    return graphene.Enum(
        name,
        members,
        description=lambda member: descriptions.get(member and member.name),
    )


BookOrder = order_enum(
    "BookOrder",
    ID=Order.by(),
    NAME=Order.by("name"),
    PAGE_COUNT=Order.by("page_count"),
    NAME_IGNORING_CASE=Order.by("name_folded"),
)
AuthorOrder = order_enum(
    "AuthorOrder", ID=Order.by(), NAME=Order.by("last_name", "first_name")
)
CategoryOrder = order_enum("CategoryOrder", ID=Order.by(), NAME=Order.by("name"))


def listed(of_type: Any, description: str, **options: Any) -> Any:
    """Return a list without nulls."""
    return graphene.List(graphene.NonNull(of_type), description=description, **options)


def combining(filter_type: Callable[[], Any]) -> tuple[Any, Any, Any]:
    """Return the fields `and_`, `or_` and `not_` of a filter."""
    return (
        listed(filter_type, "All of these hold.", name="and"),
        listed(filter_type, "At least one of these holds.", name="or"),
        graphene.InputField(filter_type, name="not", description="This does not hold."),
    )


IDS = "The id is one of these."


class BookFilter(graphene.InputObjectType):
    """Every condition that is given must hold."""

    title = graphene.String(description="A part of the name, letter case ignored.")
    author_id = graphene.Int(description="The id of the author.")
    category_id = graphene.Int(description="The id of the category.")
    min_page_count = graphene.Int(description="At least so many pages.")
    max_page_count = graphene.Int(description="At most so many pages.")
    title_starts_with = graphene.String(
        description="The beginning of the name, letter case ignored."
    )
    id_in = listed(graphene.ID, IDS)
    author_id_in = listed(graphene.Int, "The id of the author is one of these.")
    category_id_in = listed(graphene.Int, "The id of the category is one of these.")
    and_, or_, not_ = combining(lambda: BookFilter)


def name_filter(type_name: str, text: str) -> Any:
    """Return the filter of rows that are found by this text."""

    class NameFilter(graphene.InputObjectType):
        """Every condition that is given must hold."""

        class Meta:
            name = type_name

        name = graphene.String(description=f"A part of {text}, letter case ignored.")
        name_starts_with = graphene.String(
            description=f"The beginning of {text}, letter case ignored."
        )
        id_in = listed(graphene.ID, IDS)
        and_, or_, not_ = combining(lambda: NameFilter)

    return NameFilter


AuthorFilter = name_filter("AuthorFilter", '"first name last name"')
CategoryFilter = name_filter("CategoryFilter", "the name")


class PageInfo(graphene.ObjectType):
    """Where a page lies."""

    class Meta:
        default_resolver = resolve_response_name

    has_next_page = graphene.Boolean(
        required=True, description="Whether there are rows behind it."
    )
    has_previous_page = graphene.Boolean(
        required=True, description="Whether there are rows before it."
    )
    start_cursor = graphene.String(description="Of its first row, for `before`.")
    end_cursor = graphene.String(description="Of its last row, for `after`.")


def connection(type_name: str, plural: str, node_type: Callable[[], Any]) -> Any:
    """Return the connection type of a node type."""

    class RowEdge(graphene.ObjectType):
        """A row and its place."""

        class Meta:
            name = f"{type_name}Edge"
            default_resolver = resolve_response_name

        cursor = graphene.String(
            required=True, description="The place of the row, for `after` and `before`."
        )
        node = graphene.Field(node_type, required=True, description="The row.")

    class Connection(graphene.ObjectType):
        class Meta:
            name = f"{type_name}Connection"
            description = f"One page of {plural}."
            default_resolver = resolve_response_name

        edges = listed(RowEdge, "The rows with their cursors.", required=True)
        nodes = listed(node_type, "The rows alone.", required=True)
        page_info = graphene.Field(
            PageInfo, required=True, description="What is before and behind this page."
        )
        total_count = graphene.Int(
            required=True, description="How many there are on all pages."
        )

    return Connection


def page_field(
    connection_type: Any, order_type: Any, filter_type: Any, description: str
) -> graphene.Field:
    """Return a field that answers one page."""
    size = f"At most {LARGEST_PAGE}."
    return graphene.Field(
        connection_type,
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
        then_by=listed(
            order_type, "The order of rows that are equal in `orderBy`, before the id."
        ),
        description=description,
    )
