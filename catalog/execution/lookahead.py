"""Load what a selection names before graphql-core asks for it: one query per list level.

The tree of needs is a superset of what is answered (it ignores @skip and @include), which
costs at most a query, never a wrong answer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from django.db.models import QuerySet
from graphql import (
    FieldNode,
    FragmentSpreadNode,
    GraphQLResolveInfo,
    InlineFragmentNode,
    SelectionSetNode,
)

from catalog.execution.budget import RowBudget
from catalog.execution.roots import TypeName
from catalog.models import Author, Book, Category, Owner

Needs = dict[str, "Needs"]
OWNERS: tuple[Owner, ...] = ("author", "category")
OWNER_OF_TYPE: dict[TypeName, Owner] = {"Author": "author", "Category": "category"}
Row = TypeVar("Row", Book, Author, Category)


def needs_of(info: GraphQLResolveInfo, *path: str) -> Needs:
    """Return the fields below this one, or below `path` in it, each with its own needs."""
    needs: Needs = {}
    for node in info.field_nodes:
        collect(node.selection_set, needs, info)
    for name in path:
        needs = needs.get(name, {})
    return needs


def collect(
    selections: SelectionSetNode | None, needs: Needs, info: GraphQLResolveInfo
) -> None:
    for selection in selections.selections if selections else ():
        match selection:
            case FieldNode():
                below = needs.setdefault(selection.name.value, {})
                collect(selection.selection_set, below, info)
            case InlineFragmentNode():
                collect(selection.selection_set, needs, info)
            case _:
                assert isinstance(selection, FragmentSpreadNode)  # noqa: S101 - no fourth kind
                fragment = info.fragments[selection.name.value]
                collect(fragment.selection_set, needs, info)


def load(
    rows: QuerySet[Row], type_name: TypeName, needs: Needs, budget: RowBudget
) -> list[Row]:
    """Return the rows with everything below them that the needs name."""
    if type_name == "Book":
        rows = with_owners(rows, needs)
    loaded = list(rows[: budget.enough])
    budget.spend(len(loaded))
    complete(loaded, type_name, needs, budget)
    return loaded


def with_owners(books: QuerySet[Row], needs: Needs) -> QuerySet[Row]:
    named = [owner for owner in OWNERS if owner in needs]
    # Without a name select_related would follow every relation.
    return books.select_related(*named) if named else books


def complete(
    rows: Sequence[Any], type_name: TypeName, needs: Needs, budget: RowBudget
) -> None:
    """Load what is below rows that are already here."""
    once = [1] * len(rows)
    if owner := OWNER_OF_TYPE.get(type_name):
        complete_owners(owner, rows, once, needs, budget)
    else:
        complete_books(rows, once, needs, budget)


def complete_books(
    books: Iterable[Book], weights: Sequence[int], needs: Needs, budget: RowBudget
) -> None:
    """Load what is below the author and the category of books; a weight is how often a row appears."""
    for owner in OWNERS:
        if owner in needs:
            pairs = [
                (row, weight)
                for book, weight in zip(books, weights, strict=True)
                if (row := getattr(book, owner)) is not None
            ]
            rows, appears = [row for row, _ in pairs], [weight for _, weight in pairs]
            complete_owners(owner, rows, appears, needs[owner], budget)


def complete_owners(
    owner: Owner,
    rows: Sequence[Author | Category],
    weights: Sequence[int],
    needs: Needs,
    budget: RowBudget,
) -> None:
    """Load the books and the book counts of authors or categories."""
    if "books" in needs:
        attach_books(owner, rows, weights, needs["books"], budget)
    if "bookCount" in needs:
        counts = Book.objects.counts(owner, {row.pk for row in rows})
        for row in rows:
            row.loaded_book_count = counts.get(row.pk, 0)  # type: ignore[union-attr]


def attach_books(
    owner: Owner,
    rows: Sequence[Author | Category],
    weights: Sequence[int],
    needs: Needs,
    budget: RowBudget,
) -> None:
    appears: Counter[int] = Counter()
    for row, weight in zip(rows, weights, strict=True):
        appears[row.pk] += weight
    books = with_owners(Book.objects.of(owner, appears).order_by("pk"), needs)
    loaded = list(books[: budget.enough])
    below = [appears[getattr(book, f"{owner}_id")] for book in loaded]
    budget.spend(sum(below))
    complete_books(loaded, below, needs, budget)
    groups: defaultdict[int, list[Book]] = defaultdict(list)
    for book in loaded:
        groups[getattr(book, f"{owner}_id")].append(book)
    for row in rows:
        row.loaded_books = groups.get(row.pk, [])  # type: ignore[union-attr]
