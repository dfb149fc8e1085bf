"""Pages of a list by keyset: a cursor holds the sort values of its row, so any page costs the same."""

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
from catalog.text import NUL

DEFAULT_PAGE = 50
LARGEST_PAGE = 100
LARGEST_NUMBER = 2**63


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

    def cursor(self, place: Sequence[Any]) -> str:
        """Return the opaque form of a row's sort values."""
        return base64.urlsafe_b64encode(orjson.dumps(place)).decode()

    def values(self, cursor: str, *, field: str) -> list[Any]:
        """Return the sort values in a cursor, or raise BadUserInputError."""
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
        def fit(column: str, value: Any) -> bool:
            if column in self.texts:
                return isinstance(value, str) and NUL not in value
            return type(value) is int and abs(value) < LARGEST_NUMBER

        return len(values) == len(self.columns) and all(map(fit, self.columns, values))

    def sorted(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows in this order, each sort value under the name that `beyond` filters by."""
        rows = rows.alias(
            **{
                f"order_{column}": CodePoints(column)
                if column in self.texts
                else F(column)
                for column in self.columns
            }
        )
        sign = "-" if self.descending else ""
        return rows.order_by(*(f"{sign}order_{column}" for column in self.columns))

    def beyond(self, values: Sequence[Any]) -> Q:
        """Return the condition of the rows after the one with these sort values."""
        side = "lt" if self.descending else "gt"
        beyond = Q()
        for column, value in zip(reversed(self.columns), reversed(values), strict=True):
            further = Q(**{f"order_{column}__{side}": value})
            same = Q(**{f"order_{column}": value})
            beyond = further | (same & beyond) if beyond else further
        # Implied by the rest, and the only part that an index can begin with.
        return beyond & Q(**{f"order_{self.columns[0]}__{side}e": values[0]})


@dataclass(frozen=True)
class Window:
    """Which part of a list a client asks for, in the terms of Relay's connections."""

    order: Order
    first: int | None = None
    after: str | None = None
    last: int | None = None
    before: str | None = None

    @cached_property
    def size(self) -> int:
        """Return how many rows a page has, or raise BadUserInputError."""
        if self.first is not None and self.last is not None:
            raise BadUserInputError("Give first or last, not both.", field="last")
        for field, value in (("first", self.first), ("last", self.last)):
            if value is not None and not 0 <= value <= LARGEST_PAGE:
                raise BadUserInputError(
                    f"{field} must be from 0 to {LARGEST_PAGE}.", field=field
                )
        return next(
            (value for value in (self.first, self.last) if value is not None),
            DEFAULT_PAGE,
        )

    @cached_property
    def bounds(self) -> tuple[list[Any] | None, list[Any] | None]:
        """Return the sort values after and before which the page lies, or raise BadUserInputError."""
        after = self.order.values(self.after, field="after") if self.after else None
        before = self.order.values(self.before, field="before") if self.before else None
        return after, before


class Page:
    """The sort values of one window's rows; what is around them is read only when it is answered."""

    def __init__(self, everything: QuerySet[Any], window: Window) -> None:
        """Read the sort values, or raise BadUserInputError."""
        self.everything, self.window, self.order = everything, window, window.order
        after, before = window.bounds
        size, backward = window.size, window.last is not None
        rows = self.order.sorted(everything)
        if after is not None:
            rows = rows.filter(self.order.beyond(after))
        if before is not None:
            rows = rows.filter(self.order.reversed().beyond(before))
        if backward:
            rows = self.order.reversed().sorted(rows)
        found = list(rows.values_list(*self.order.columns)[: size + 1])
        self.more = len(found) > size
        self.places = found[:size][::-1] if backward else found[:size]

    @cached_property
    def cursors(self) -> dict[int, str]:
        """Return the cursor of each row by its key, in the page's order."""
        return {place[-1]: self.order.cursor(place) for place in self.places}

    @property
    def has_next(self) -> bool:
        if self.window.last is None:
            return self.more
        return self.exists(self.order, self.places[-1:], self.window.bounds[1])

    @property
    def has_previous(self) -> bool:
        if self.window.last is not None:
            return self.more
        return self.exists(
            self.order.reversed(), self.places[:1], self.window.bounds[0]
        )

    def exists(
        self, order: Order, edge: list[Sequence[Any]], bound: Sequence[Any] | None
    ) -> bool:
        """Tell whether rows lie beyond the page's edge, or beyond its bound when it is empty."""
        if not edge and bound is None:
            return False
        values = edge[0] if edge else bound
        assert values is not None  # noqa: S101 - one of both is there
        return order.sorted(self.everything).filter(order.beyond(values)).exists()

    def count(self) -> int:
        return self.everything.count()
