"""Filters of connections: the condition that the rows of a page meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import and_, or_
from typing import Any

from django.db.models import Q

from catalog.errors import BadUserInputError
from catalog.execution.limits import check
from catalog.identifiers import primary_key
from catalog.models import EVERY_ROW, NO_ROW, Book, NamedQuerySet

Rows = NamedQuerySet[Any]

CONDITIONS: dict[str, Callable[[Rows, Any], Q]] = {
    "title": lambda rows, text: rows.with_part(text),
    "name": lambda rows, text: rows.with_part(text),
    "title_starts_with": lambda rows, text: rows.beginning(text),
    "name_starts_with": lambda rows, text: rows.beginning(text),
    "id_in": lambda _, ids: Q(pk__in=list(map(primary_key, ids))),
    "author_id": lambda _, key: Q(author_id=key),
    "author_id_in": lambda _, keys: Q(author_id__in=keys),
    "category_id": lambda _, key: Q(category_id=key),
    "category_id_in": lambda _, keys: Q(category_id__in=keys),
    "min_page_count": lambda _, number: Q(page_count__gte=number),
    "max_page_count": lambda _, number: Q(page_count__lte=number),
}


JOINED = {"and_": (and_, EVERY_ROW), "or_": (or_, NO_ROW)}


class Filter:
    """The condition of one filter, measured while it is built."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.conditions = self.values = 0

    def condition(self, fields: Mapping[str, Any], depth: int = 1) -> Q:
        """Return the condition that all fields hold; null is no condition.

        Raises QueryTooComplexError.
        """
        check("filter_depth", depth)
        parts = [
            self.part(name, value, depth)
            for name, value in fields.items()
            if value is not None
        ]
        return reduce(and_, parts, EVERY_ROW)

    def part(self, name: str, value: Any, depth: int) -> Q:
        self.conditions += 1
        check("filter_conditions", self.conditions)
        if name == "not_":
            return ~self.condition(value, depth + 1)
        if name in JOINED:
            join, start = JOINED[name]
            return reduce(
                join, (self.condition(each, depth + 1) for each in value), start
            )
        if isinstance(value, list):
            self.values += len(value)
            check("filter_values", self.values)
        return CONDITIONS[name](self.rows, value)


def filtered(rows: Rows, fields: Mapping[str, Any] | None) -> Rows:
    """Return the rows that a filter keeps, or raise QueryTooComplexError."""
    return rows.filter(Filter(rows).condition(fields)) if fields else rows


def ranked(rows: Rows, fields: Mapping[str, Any] | None) -> Rows:
    """Annotate the relevance to the text in a filter, or raise BadUserInputError."""
    name = "title" if rows.model is Book else "name"
    part = (fields or {}).get(name)
    if part is None:
        raise BadUserInputError(f"RELEVANCE needs {name} in filter.", field="filter")
    return rows.ranked(part)
