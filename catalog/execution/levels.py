"""Levels of an answer: each is one list of rows, read by one statement and built by one loop."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.db.models import QuerySet

from catalog.execution.limits import Budget
from catalog.execution.statements import Rows, Selection, Statement
from catalog.models import MODELS, Book, Owner, TypeName

Items = Any  # a list of objects, or a dict by key of the owner
Json = dict[str, Any]
PART = 100  # rows with long texts that are read together


@dataclass(frozen=True, slots=True)
class Run:
    """One run of compiled levels: the variables, and what the answer may still have."""

    variables: Json
    budget: Budget


class Below(Protocol):
    """What the rows of a level need from other statements."""

    def load(self, rows: Rows, weights: list[int], run: Run) -> Items:
        """Return what belongs to each key that a column of these rows names."""


def keyed(type_name: TypeName, keys: Iterable[int]) -> Selection:
    rows = MODELS[type_name].objects.all()
    return Selection(rows.keyed, rows.key_parameter(keys))


def appearances_of(rows: Rows, weights: list[int], column: int) -> Counter[int]:
    """Return how often the answer has each row that a column names; null names none."""
    appearances: Counter[int] = Counter()
    for row, weight in zip(rows, weights, strict=True):
        appearances[row[column]] += weight
    appearances.pop(None, None)  # type: ignore[call-overload] # no category
    return appearances


@dataclass(slots=True)
class OwnedBooks:
    """The books, or the number of books, of the owners that one column of a level names."""

    owner: Owner
    key: int  # the column of the level with the owner's key
    level: Level | None  # None: only the number is selected

    def load(self, rows: Rows, weights: list[int], run: Run) -> Items:
        """Return the lists, or the numbers, by owner."""
        appearances = appearances_of(rows, weights, self.key)
        if self.level is None:
            return Book.objects.counts(self.owner, appearances)
        keys = Book.objects.all().key_parameter(appearances)
        return self.level.load(Selection(self.books, keys), run, appearances)

    def books(self, key_parameter: Any) -> QuerySet[Book]:
        return Book.objects.owned(self.owner, key_parameter).order_by("pk")


@dataclass(slots=True)
class KeyedOwners:
    """The owners that one column of a level names, each loaded once."""

    type_name: TypeName
    key: int  # the column of the level with the owner's key
    level: Level

    def load(self, rows: Rows, weights: list[int], run: Run) -> Items:
        """Return a list with the owner, by key; owners count no rows."""
        appearances = appearances_of(rows, weights, self.key)
        selection = keyed(self.type_name, appearances)
        return self.level.load(
            selection, run, appearances, limit=len(appearances), is_list=False
        )


@dataclass(slots=True)
class Instances:
    """The model instances of the rows that one column of a level names."""

    type_name: TypeName
    key: int  # the column of the level with the row's key

    def load(self, rows: Rows, _weights: list[int], _run: Run) -> Items:
        """Return the instances by key; deleted rows are left out."""
        objects = MODELS[self.type_name].objects.all()
        keys = objects.key_parameter({row[self.key] for row in rows} - {None})
        return {row.pk: row for row in objects.keyed(keys)}


@dataclass(slots=True)
class Level:
    """One list of rows in the answer: its columns, what is below it and the loop that builds it.

    `values` counts the fields of an object, with those of its owners. `texts` counts how often it
    answers the text of each column.
    """

    columns: list[str] = field(default_factory=list)
    values: int = 0
    texts: Counter[int] = field(default_factory=Counter)
    has_long_text: bool = False
    below: list[Below] = field(default_factory=list)
    statements: dict[Hashable, Statement] = field(default_factory=dict)  # by shape
    uses_instances: bool = False
    build: Callable[..., Items] = field(init=False)

    @property
    def is_single(self) -> bool:
        """True if one statement reads everything."""
        return not self.below

    def column(self, path: str) -> int:
        """Return the index of a column; add the column if it is missing."""
        if path not in self.columns:
            self.columns.append(path)
        return self.columns.index(path)

    def characters(self, rows: Rows, weights: list[int]) -> int:
        """Return how many characters of text the answer has of these rows."""
        return sum(
            uses
            * sum(
                [
                    len(row[column] or "") * weight
                    for row, weight in zip(rows, weights, strict=True)
                ]
            )
            for column, uses in self.texts.items()
        )

    def read(
        self,
        selection: Selection,
        budget: Budget,
        appearances: Mapping[int, int] | None,
        most: int,
    ) -> tuple[Rows, list[int]]:
        """Return the rows and how often the answer has each; stop when its text is too long."""
        if (statement := self.statements.get(selection.shape)) is None:
            statement = Statement(selection, self.columns)
            self.statements[selection.shape] = statement
        rows: Rows = []
        weights: list[int] = []
        size = min(most, PART) if self.has_long_text else most
        with statement.rows(selection.parameter, most, in_parts=size < most) as cursor:
            while part := cursor.fetchmany(size):
                shares = [1] * len(part)
                if appearances:
                    shares = [appearances[row[0]] for row in part]
                budget.characters.spend(self.characters(part, shares))
                rows += part
                weights += shares
        return rows, weights

    def load(
        self,
        selection: Selection,
        run: Run,
        appearances: Mapping[int, int] | None = None,
        sort_key: Callable[[Any], Any] | None = None,
        limit: int | None = None,
        *,
        is_list: bool = True,
    ) -> Items:
        """Run this level and all below it.

        `appearances` counts how often the answer has what belongs to each key in the first
        column.
        """
        budget = run.budget
        most = budget.enough if limit is None else limit
        if is_list:
            most = min(most, budget.enough)
        rows: Rows = []
        weights: list[int] = []
        if most:
            rows, weights = self.read(selection, budget, appearances, most)
        if is_list:
            budget.rows.spend(sum(weights))
        budget.values.spend(sum(weights) * self.values)
        if sort_key is not None:
            rows.sort(key=sort_key)
        return self.build(
            rows, *(below.load(rows, weights, run) for below in self.below)
        )


def compile_loop(level: Level, item: str, *, grouped: bool) -> Callable[..., Items]:
    """Return the loop that builds a level's objects as a list, or grouped by the first column.

    The only client input in the source are response names, which the grammar limits to
    letters, digits and underscores, and which are quoted.
    """
    tables = "".join(f", b{index}" for index in range(len(level.below)))
    row = "".join(f"c{index}," for index in range(len(level.columns)))
    body = (
        f"    for {row} in rows: groups[c0].append({item})\n    return groups"
        if grouped
        else f"    return [{item} for {row} in rows]"
    )
    source = f"def build(rows{tables}):\n    groups = defaultdict(list)\n{body}\n"
    scope: dict[str, Any] = {"defaultdict": defaultdict}
    exec(source, scope)  # noqa: S102 - see the docstring
    build: Callable[..., Items] = scope["build"]
    return build
