"""Keyset pagination: a cursor holds the sort values of its row, so any page costs the same."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import orjson
from django.db.models import F, Q, QuerySet

from catalog.errors import BadUserInputError
from catalog.fields import CodePoints
from catalog.text_checks import NUL

DEFAULT_PAGE = 50
LARGEST_PAGE = 100
LARGEST_NUMBER = 2**63

SortValues = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Order:
    """A total order of rows: columns, the last of them the key, all in one direction.

    Columns named in `texts` are compared by code point.
    """

    columns: tuple[str, ...] = ("pk",)
    texts: tuple[str, ...] = ()
    descending: bool = False

    def reversed(self) -> Order:
        return replace(self, descending=not self.descending)

    def cursor(self, values: SortValues) -> str:
        """Return the opaque form of a row's sort values."""
        return base64.urlsafe_b64encode(orjson.dumps(values)).decode()

    def values(self, cursor: str | None, *, field: str) -> SortValues | None:
        """Return the sort values in a cursor, or raise BadUserInputError."""
        if not cursor:
            return None
        try:
            data = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True)
            values = orjson.loads(data)
        except (binascii.Error, ValueError):
            values = None
        if not isinstance(values, list) or not self.fits(values):
            raise BadUserInputError(
                f"{field} is not a cursor of this order.", field=field
            )
        return values

    def fits(self, values: list[Any]) -> bool:
        """Return True if there is one value of the right type for each column."""

        def fits_column(column: str, value: Any) -> bool:
            if column in self.texts:
                return isinstance(value, str) and NUL not in value
            return type(value) is int and abs(value) < LARGEST_NUMBER

        return len(values) == len(self.columns) and all(
            map(fits_column, self.columns, values)
        )

    def sorted(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows in this order, with the aliases that `beyond` filters by."""
        aliases = {
            f"order_{column}": CodePoints(column) if column in self.texts else F(column)
            for column in self.columns
        }
        sign = "-" if self.descending else ""
        rows = rows.alias(**aliases)
        return rows.order_by(*(f"{sign}{alias}" for alias in aliases))

    def at(self, values: SortValues) -> Q:
        """Return the condition of the row with these sort values."""
        return Q(
            **{
                f"order_{column}": value
                for column, value in zip(self.columns, values, strict=True)
            }
        )

    def beyond(self, values: SortValues) -> Q:
        """Return the condition of the rows after the one with these sort values."""
        side = "lt" if self.descending else "gt"
        beyond = Q()
        for column, value in zip(reversed(self.columns), reversed(values), strict=True):
            further = Q(**{f"order_{column}__{side}": value})
            same = Q(**{f"order_{column}": value})
            beyond = further | (same & beyond) if beyond else further
        # It is implied, but an index scan can start only from a plain condition on the first column.
        return beyond & Q(**{f"order_{self.columns[0]}__{side}e": values[0]})


def page_size(first: int | None, last: int | None) -> int:
    """Return the number of rows of a page, or raise BadUserInputError."""
    if first is not None and last is not None:
        raise BadUserInputError("Give first or last, not both.", field="last")
    field, size = ("first", first) if last is None else ("last", last)
    if size is None:
        return DEFAULT_PAGE
    if not 0 <= size <= LARGEST_PAGE:
        raise BadUserInputError(
            f"{field} must be from 0 to {LARGEST_PAGE}.", field=field
        )
    return size


class Page:
    """The sort values of one page's rows; everything else is read only when it is selected.

    Arguments and properties are those of Relay's connections.
    """

    def __init__(
        self,
        rows: QuerySet[Any],
        order: Order,
        *,
        first: int | None = None,
        after: str | None = None,
        last: int | None = None,
        before: str | None = None,
    ) -> None:
        """Read the sort values, or raise BadUserInputError."""
        self.rows, self.order, self.is_backward = rows, order, last is not None
        self.after = order.values(after, field="after")
        self.before = order.values(before, field="before")
        size = page_size(first, last)
        rows = order.sorted(rows)
        if self.after is not None:
            rows = rows.filter(order.beyond(self.after))
        if self.before is not None:
            rows = rows.filter(order.reversed().beyond(self.before))
        if self.is_backward:
            rows = order.reversed().sorted(rows)
        values = list(rows.values_list(*order.columns)[: size + 1])
        self.has_more = len(values) > size
        self.values = values[:size][::-1] if self.is_backward else values[:size]

    @cached_property
    def cursors(self) -> dict[int, str]:
        """Return the cursor of each row by its key, in the page's order."""
        return {values[-1]: self.order.cursor(values) for values in self.values}

    @property
    def start_cursor(self) -> str | None:
        return next(iter(self.cursors.values()), None)

    @property
    def end_cursor(self) -> str | None:
        return next(reversed(self.cursors.values()), None)

    @property
    def total_count(self) -> int:
        return self.rows.count()

    @property
    def has_next_page(self) -> bool:
        if not self.is_backward:
            return self.has_more
        return self.exists(self.order, self.values[-1:], self.before)

    @property
    def has_previous_page(self) -> bool:
        if self.is_backward:
            return self.has_more
        return self.exists(self.order.reversed(), self.values[:1], self.after)

    def exists(
        self, order: Order, edge: list[SortValues], bound: SortValues | None
    ) -> bool:
        """Return True if rows lie beyond the page's edge; of an empty page: at or beyond its bound."""
        values = edge[0] if edge else bound
        if values is None:
            return False
        condition = order.beyond(values)
        if not edge:
            condition |= order.at(values)
        return order.sorted(self.rows).filter(condition).exists()
