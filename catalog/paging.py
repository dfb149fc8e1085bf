"""Keyset pagination: a cursor holds the sort values of its row, so any page costs the same."""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, Self, cast

import orjson
from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import F, Q
from django.db.models.expressions import RawSQL

from catalog.errors import BadUserInputError, ResultTooLargeError
from catalog.fields import CodePoints
from catalog.models import BookQuerySet, NamedQuerySet, Owner
from catalog.text_checks import NUL

DEFAULT_PAGE = 50
LARGEST_PAGE = 100
MOST_PLACES = 200_000  # of the pages of one field
LARGEST_NUMBER = 2**63
TEXTS = {"name", "name_folded", "first_name", "last_name"}  # compared by code point

SortValues = Sequence[Any]
Rows = NamedQuerySet[Any]


@dataclass(frozen=True, slots=True)
class Order:
    """A total order of rows: columns, of which the last is the key, and whether each descends."""

    columns: tuple[tuple[str, bool], ...]

    @classmethod
    def by(cls, *names: str) -> Self:
        """Return the ascending order of these columns, and of the key between equals."""
        return cls(tuple((name, False) for name in (*names, "pk")))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    def reversed(self) -> Order:
        return Order(tuple((name, not descends) for name, descends in self.columns))

    def then(self, others: Iterable[Order]) -> Order:
        """Return this order with the columns of others before the key."""
        columns: dict[str, bool] = {}
        for order in (self, *others):
            columns.pop("pk", None)  # only the last one's key decides
            columns |= {name: way for name, way in order.columns if name not in columns}
            if len(order.columns) == 1:
                break  # no two rows are equal in this order
        return Order(tuple(columns.items()))

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
            if column in TEXTS:
                return isinstance(value, str) and NUL not in value
            return type(value) is int and abs(value) < LARGEST_NUMBER

        return len(values) == len(self.columns) and all(
            map(fits_column, self.names, values)
        )

    def sorted(self, rows: Rows) -> Rows:
        """Return the rows in this order, with the aliases that `beyond` filters by."""
        aliases = {
            f"order_{name}": CodePoints(name) if name in TEXTS else F(name)
            for name in self.names
        }
        signs = ["-" if descends else "" for _, descends in self.columns]
        rows = rows.alias(**aliases)
        return rows.order_by(*map("{}{}".format, signs, aliases))

    def sort(self, places: list[SortValues]) -> None:
        """Sort places as `sorted` sorts their rows."""
        for column, (_, descends) in reversed([*enumerate(self.columns)]):
            places.sort(key=itemgetter(column), reverse=descends)

    def beyond(self, values: SortValues, *, inclusive: bool = False) -> Q:
        """Return the condition of the rows after those with these values, or from them on."""
        beyond = Q()
        sides = ["lt" if descends else "gt" for _, descends in self.columns]
        for name, side, value in reversed(
            [*zip(self.names, sides, values, strict=True)]
        ):
            further = Q(**{f"order_{name}__{side}": value})
            same = Q(**{f"order_{name}": value})
            if beyond:
                beyond = further | (same & beyond)
            else:
                beyond = (further | same) if inclusive else further
        # It is implied, but an index scan can start only from a plain condition on the first column.
        return beyond & Q(**{f"order_{self.names[0]}__{sides[0]}e": values[0]})


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


class Window:
    """The part of a list that a page shows, by the arguments of Relay's connections."""

    def __init__(
        self,
        order: Order,
        *,
        first: int | None = None,
        after: str | None = None,
        last: int | None = None,
        before: str | None = None,
    ) -> None:
        """Read the arguments, or raise BadUserInputError."""
        self.order, self.is_backward = order, last is not None
        self.after = order.values(after, field="after")
        self.before = order.values(before, field="before")
        self.size = page_size(first, last)

    def of(self, rows: Rows) -> Rows:
        """Return the rows between the bounds, in the direction in which the page is read."""
        order = self.order
        rows = order.sorted(rows)
        if self.after is not None:
            rows = rows.filter(order.beyond(self.after))
        if self.before is not None:
            rows = rows.filter(order.reversed().beyond(self.before))
        return order.reversed().sorted(rows) if self.is_backward else rows

    def passed(self, rows: Rows) -> Rows:
        """Return the rows from the bound at which the page begins, away from the page."""
        bound = self.before if self.is_backward else self.after
        if bound is None:
            return rows.none()
        order = self.order if self.is_backward else self.order.reversed()
        return order.sorted(rows).filter(order.beyond(bound, inclusive=True)).order_by()


@dataclass
class Pages:
    """One page of the books of each owner; or without owners one page of all rows, of the key None.

    What no page is asked for is not read. What is asked takes one statement for all pages.
    """

    rows: Rows
    window: Window
    owner: Owner | None
    keys: Collection[Any]

    @cached_property
    def places(self) -> Mapping[Any, list[SortValues]]:
        """The sort values of each page's rows, and those of one row more.

        Raises ResultTooLargeError.
        """
        window, order, rows = self.window, self.window.order, self.window.of(self.rows)
        places = self.first_of_each(rows, order.names, window.size + 1, MOST_PLACES + 1)
        if sum(map(len, places.values())) > MOST_PLACES:
            raise ResultTooLargeError(MOST_PLACES, "rows in pages")
        for each in places.values():
            (order.reversed() if window.is_backward else order).sort(each)
        return places

    @cached_property
    def passed(self) -> Mapping[Any, list[SortValues]]:
        """A row before each page if it is read forwards, otherwise a row behind it."""
        return self.first_of_each(self.window.passed(self.rows), ["pk"], 1)

    @cached_property
    def totals(self) -> Mapping[Any, int]:
        if self.owner is None:
            return {None: self.rows.count()}
        books = cast("BookQuerySet", self.rows)
        return books.counts(self.owner, self.keys)

    def first_of_each(
        self, rows: Rows, columns: Sequence[str], size: int, most: int | None = None
    ) -> dict[Any, list[SortValues]]:
        """Return these columns of the first rows of each owner, in any order."""
        if self.owner is None:
            return {None: list(rows.values_list(*columns)[:size])}
        own = rows.filter(**{f"{self.owner}_id": RawSQL("owners.key", ())})
        try:
            text, parameters = by_owner(own, columns, self.keys, size)
        except EmptyResultSet:  # a filter that no row can meet
            return {}
        found: defaultdict[Any, list[SortValues]] = defaultdict(list)
        with connections[rows.db].cursor() as cursor:
            limit = "" if most is None else f" LIMIT {most:d}"
            cursor.execute(text + limit, parameters)
            for key, *values in cursor.fetchall():
                found[key].append(values)
        return found


def by_owner(
    rows: Rows, columns: Sequence[str], owners: Iterable[int], size: int
) -> tuple[str, Sequence[Any]]:
    """Return the statement that reads the first rows for each owner, and its parameters.

    Each owner costs the index scan of its own page, however many books it has.
    """
    keys = rows.key_parameter(owners)
    read = columns if rows.is_postgresql else ["pk"]
    query = rows.values_list(*read)[:size].query
    sql, parameters = query.get_compiler(rows.db).as_sql()
    if rows.is_postgresql:
        return (
            "SELECT owners.key, places.* "  # noqa: S608 - SQL that the ORM compiled
            "FROM unnest(%s::bigint[]) AS owners(key) "
            f"CROSS JOIN LATERAL ({sql}) AS places"
        ), [keys, *parameters]
    compiler = rows.values_list(*columns).query.get_compiler(rows.db)
    compiler.pre_sql_setup()
    selected = [column for _, column, _ in compiler.select]
    listed = ", ".join(text for text, _ in selected)
    meta = rows.model._meta  # noqa: SLF001 - documented by Django
    # In the subquery, the table's name means the table of the subquery.
    return (
        f"SELECT owners.key, {listed} "  # noqa: S608 - SQL that the ORM compiled
        "FROM (SELECT value AS key FROM json_each(%s)) AS owners "
        f"CROSS JOIN {meta.db_table} ON {meta.db_table}.{meta.pk.column} IN ({sql})"
    ), [*(each for _, values in selected for each in values), keys, *parameters]


@dataclass
class Page:
    """One page; everything is read only when it is selected. Properties are those of Relay."""

    pages: Pages
    key: int | None

    @cached_property
    def values(self) -> list[SortValues]:
        """The sort values of the page's rows; the key comes last."""
        window = self.pages.window
        values = self.pages.places.get(self.key, [])[: window.size]
        return values[::-1] if window.is_backward else values

    def goes_on(self, *, back: bool) -> bool:
        """Return True if there are rows where the page ends, or back where it begins."""
        pages = self.pages
        if back:
            return bool(pages.passed.get(self.key))
        return len(pages.places.get(self.key, ())) > pages.window.size

    @cached_property
    def cursors(self) -> list[str]:
        return [*map(self.pages.window.order.cursor, self.values)]

    @property
    def start_cursor(self) -> str | None:
        return self.cursors[0] if self.cursors else None

    @property
    def end_cursor(self) -> str | None:
        return self.cursors[-1] if self.cursors else None

    @property
    def total_count(self) -> int:
        return self.pages.totals.get(self.key, 0)

    @property
    def has_next_page(self) -> bool:
        return self.goes_on(back=self.pages.window.is_backward)

    @property
    def has_previous_page(self) -> bool:
        return self.goes_on(back=not self.pages.window.is_backward)
