"""Books, their authors and their categories, and the questions that may be asked of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, Literal, Self, TypeVar

from django.db import connections, models, transaction
from django.db.models.expressions import RawSQL
from django.db.models.functions import StrIndex

from catalog.fields import CodePoints, FoldedTextField
from catalog.text import DESCRIPTION_LENGTH, NAME_LENGTH, NUL, folded

Row = TypeVar("Row", bound=models.Model)
Owner = Literal["author", "category"]

TRIGRAM = 3  # shorter terms have no trigram and are looked for row by row


class NamedQuerySet(models.QuerySet[Row]):
    """Rows with a `name_folded` column."""

    def lock(self, keys: Collection[int]) -> int:
        """Keep rows from being changed or deleted until the transaction ends; return how many exist.

        A book that refers to them can be stored and read until then. Ordered by key, so that
        two transactions never wait for each other.
        """
        rows = self.filter(pk__in=keys).order_by("pk").select_for_update(no_key=True)
        return len(rows.values_list("pk"))

    def delete_locked(self, keys: Collection[int]) -> None:
        """Delete rows to which no book can begin to refer meanwhile."""
        with transaction.atomic():
            self.lock(keys)
            self.filter(pk__in=keys).delete()

    def containing(self, part: str) -> Self:
        """Keep the rows whose name holds this text, letter case ignored."""
        if NUL in part:
            return self.none()
        if not part:
            return self
        return self.alias(
            place=StrIndex("name_folded", models.Value(folded(part)))
        ).filter(place__gt=0)

    def key_parameter(self, keys: Iterable[int]) -> Any:
        """Return any number of keys as one parameter."""
        wanted = list(keys)
        postgresql = connections[self.db].vendor == "postgresql"
        return wanted if postgresql else json.dumps(wanted)

    def keyed(self, keys: Any) -> Self:
        """Keep the rows that one parameter names; in no order."""
        return self.filter(pk__in=self.keys_inside(keys)).order_by()

    def keys_inside(self, keys: Any) -> RawSQL:
        if connections[self.db].vendor == "postgresql":
            return RawSQL("SELECT unnest(%s::bigint[])", [keys])
        return RawSQL("SELECT value FROM json_each(%s)", [keys])


class BookQuerySet(NamedQuerySet["Book"]):
    def named(self, name: str) -> Self:
        """Keep the books of exactly this name, letter case ignored, the oldest first."""
        return self.filter(name_folded=folded(name)).order_by("pk")

    def search(self, title: str, *, at_most: int | None = None) -> Self:
        """Keep the books whose title holds this text, letter case ignored; in no order.

        `at_most` lets the index stop early where the caller refuses a longer answer anyway.
        """
        if NUL in title:
            return self.none()
        indexed = is_indexed(title)
        return self.matching(self.term(title), indexed=indexed, at_most=at_most)

    def term(self, title: str) -> str:
        """Return what the database compares with: folded text, or a pattern for its index."""
        text = folded(title)
        if not is_indexed(title):
            return text
        if connections[self.db].vendor == "postgresql":
            return f"%{connections[self.db].ops.prep_for_like_query(text)}%"
        return '"' + text.replace('"', '""') + '"'

    def matching(self, term: str, *, indexed: bool, at_most: int | None = None) -> Self:
        """Keep the books that a term finds."""
        if not indexed:
            return self.containing(term)
        if connections[self.db].vendor == "postgresql":
            return self.filter(name_folded__like=term)
        limit = "" if at_most is None else f" LIMIT {at_most:d}"
        found = RawSQL(  # noqa: S611 - the term is a parameter, the limit a number
            "SELECT rowid FROM catalog_book_search WHERE catalog_book_search MATCH %s"  # noqa: S608
            + limit,
            [term],
        )
        return self.filter(pk__in=found)

    def of(self, owner: Owner, keys: Iterable[int]) -> Self:
        """Keep the books of these authors or categories."""
        return self.owned(owner, self.key_parameter(keys))

    def owned(self, owner: Owner, keys: Any) -> Self:
        """Keep the books of the authors or categories that one parameter names."""
        return self.filter(**{f"{owner}_id__in": self.keys_inside(keys)})

    def counts(self, owner: Owner, keys: Iterable[int]) -> dict[int, int]:
        """Return how many books each of these authors or categories has; no entry means none."""
        counted = self.of(owner, keys).order_by().values_list(f"{owner}_id")
        return dict(counted.annotate(models.Count("pk")))


def is_indexed(title: str) -> bool:
    """Tell whether a search term is long enough to have a trigram."""
    return len(folded(title)) >= TRIGRAM


class Author(models.Model):
    id = models.AutoField(primary_key=True)  # the GraphQL Int that names it has 32 bits
    first_name = models.CharField(max_length=NAME_LENGTH)
    last_name = models.CharField(max_length=NAME_LENGTH)
    name_folded = FoldedTextField("first_name", "last_name")

    objects = NamedQuerySet["Author"].as_manager()

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(
                CodePoints("last_name"),
                CodePoints("first_name"),
                "id",
                name="author_by_name",
            )
        ]

    def __str__(self) -> str:
        return f"{self.first_name} {self.last_name}"


class Category(models.Model):
    id = models.AutoField(primary_key=True)  # the GraphQL Int that names it has 32 bits
    name = models.CharField(max_length=NAME_LENGTH)
    name_folded = FoldedTextField("name")
    # null: a category that was never described answers null, not the empty text
    description = models.TextField(max_length=DESCRIPTION_LENGTH, null=True, blank=True)  # noqa: DJ001

    objects = NamedQuerySet["Category"].as_manager()

    class Meta:
        ordering = ["pk"]
        verbose_name_plural = "categories"
        indexes = [models.Index(CodePoints("name"), "id", name="category_by_name")]

    def __str__(self) -> str:
        return self.name


class Book(models.Model):
    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=NAME_LENGTH)
    name_folded = FoldedTextField("name")
    page_count = models.PositiveIntegerField()
    author = models.ForeignKey(Author, models.PROTECT, related_name="books")
    category = models.ForeignKey(
        Category, models.SET_NULL, related_name="books", null=True, blank=True
    )

    objects = BookQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(CodePoints("name"), "id", name="book_by_name"),
            models.Index(fields=["name_folded", "id"], name="book_by_folded_name"),
            models.Index(fields=["page_count", "id"], name="book_by_page_count"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(page_count__gte=0, page_count__lt=2**31),
                name="book_page_count_is_a_graphql_int",
            )
        ]

    def __str__(self) -> str:
        return self.name


TypeName = Literal["Book", "Author", "Category"]
MODELS: dict[TypeName, type[Book | Author | Category]] = {
    "Book": Book,
    "Author": Author,
    "Category": Category,
}
