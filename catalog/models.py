"""Books, their authors and their categories, and the queries on them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from functools import lru_cache, reduce
from operator import or_
from typing import Any, Literal, Self, TypeVar, cast

from django.db import connections, models, transaction
from django.db.models import Case, Q, When
from django.db.models.expressions import RawSQL
from django.db.models.functions import StrIndex
from django.db.models.lookups import GreaterThan, GreaterThanOrEqual, LessThan
from django.db.transaction import TransactionManagementError

from catalog.execution.statements import Selection, Statement
from catalog.fields import CodePoints, FoldedTextField
from catalog.text_checks import (
    DESCRIPTION_LENGTH,
    NAME_LENGTH,
    can_occur,
    folded,
    following,
)

Row = TypeVar("Row", bound=models.Model)
Owner = Literal["author", "category"]

WORD_STARTS = " -'\u2019\"("  # a word of a name begins behind one of them
TRIGRAM = 3  # shorter terms have no trigram and need a scan
NO_ROW = Q(pk__in=[])
EVERY_ROW = ~NO_ROW


class NamedQuerySet(models.QuerySet[Row]):
    """Rows with a `name_folded` column."""

    def delete_locked(self, keys: Collection[int]) -> None:
        """Delete rows; no book can begin to refer to them at the same time."""
        with transaction.atomic():
            self.filter(pk__in=locked(cast("Any", self.model), keys)).delete()

    def search(self, part: str) -> Self:
        """Keep the rows whose name contains this text, letter case ignored."""
        return self.filter(self.with_part(part))

    def with_part(self, part: str) -> Q:
        """Return the condition of `search`."""
        return self.containing(part)

    def containing(self, part: str) -> Q:
        """Return the condition of `search`, without an index."""
        if not can_occur(part):
            return NO_ROW
        if not part:
            return EVERY_ROW
        position = StrIndex("name_folded", models.Value(folded(part)))
        return Q(GreaterThan(position, 0))

    def beginning(self, prefix: str) -> Q:
        """Return the condition of the rows whose name begins so, letter case ignored."""
        if not can_occur(prefix):
            return NO_ROW
        if not prefix:
            return EVERY_ROW
        text, name = folded(prefix), CodePoints("name_folded")
        # The last text that begins so is not known, but the first one behind them all is.
        end = following(text)
        return Q(GreaterThanOrEqual(name, text)) & (
            Q(LessThan(name, end)) if end else EVERY_ROW
        )

    def ranked(self, part: str) -> Self:
        """Annotate `relevance` to a text, letter case ignored.

        0: it is the name, 1: the name begins so, 2: a word of the name begins so, 3: otherwise.
        """
        words = reduce(or_, (self.containing(mark + part) for mark in WORD_STARTS))
        ranks = [Q(name_folded=folded(part)), self.beginning(part), words]
        cases = (When(condition, then=rank) for rank, condition in enumerate(ranks))
        return self.annotate(relevance=Case(*cases, default=len(ranks)))

    def key_parameter(self, keys: Iterable[int]) -> Any:
        """Return any number of keys as one parameter."""
        values = list(keys)
        return values if self.is_postgresql else json.dumps(values)

    def keyed(self, key_parameter: Any) -> Self:
        """Keep the rows with these keys; in no order."""
        return self.filter(pk__in=self.unnested(key_parameter)).order_by()

    def unnested(self, key_parameter: Any) -> RawSQL:
        """Return the subquery that reads the keys from one parameter."""
        if self.is_postgresql:
            return RawSQL("SELECT unnest(%s::bigint[])", [key_parameter])
        return RawSQL("SELECT value FROM json_each(%s)", [key_parameter])

    @property
    def is_postgresql(self) -> bool:
        return connections[self.db].vendor == "postgresql"


def locked(model: type[Book | Author | Category], keys: Collection[int]) -> set[int]:
    """Lock rows of a NamedQuerySet until the transaction ends; return the keys of those that exist.

    Books that refer to them can be stored and read meanwhile. Ordered by key, so that two
    transactions cannot deadlock. Raises TransactionManagementError outside of a transaction.
    """
    rows = model.objects.all()
    if connections[rows.db].get_autocommit():
        raise TransactionManagementError("rows are locked in a transaction")
    statement, parameter = locking(model), rows.key_parameter(keys)
    with statement.rows(parameter, len(keys), in_parts=False) as cursor:
        return {key for (key,) in cursor.fetchall()}


@lru_cache
def locking(model: type[Book | Author | Category]) -> Statement:
    """Return the statement of `locked`; the ORM would compile it for each change."""
    rows = model.objects.all()

    def build(keys: Any) -> models.QuerySet[Any]:
        if rows.is_postgresql:  # which plans this in half the time, for few keys
            is_chosen = RawSQL("id = ANY(%s::bigint[])", [keys], models.BooleanField())
            chosen = rows.filter(is_chosen)
        else:
            chosen = rows.keyed(keys)
        return chosen.order_by("pk").select_for_update(no_key=True)

    return Statement(Selection(build, rows.key_parameter([1])), ["pk"])


class BookQuerySet(NamedQuerySet["Book"]):
    def named(self, name: str) -> Self:
        """Keep the books of exactly this name, letter case ignored, the oldest first."""
        books = self.alias(folded=CodePoints("name_folded"))
        return books.filter(folded=folded(name)).order_by("pk")

    def with_part(self, part: str) -> Q:
        if not can_occur(part) or not is_indexed(part):
            return self.containing(part)
        return self.matching(self.term(part))

    def term(self, part: str) -> str:
        """Return the term with which the database's index finds this text."""
        text = folded(part)
        if self.is_postgresql:
            return f"%{connections[self.db].ops.prep_for_like_query(text)}%"
        return '"' + text.replace('"', '""') + '"'

    def matching(self, term: str, *, at_most: int | None = None) -> Q:
        """Return the condition of `search`, by the index.

        `at_most` lets SQLite stop early where the caller refuses more rows anyway.
        """
        if self.is_postgresql:
            return Q(name_folded__like=term)
        limit = "" if at_most is None else f" LIMIT {at_most:d}"
        keys = RawSQL(  # noqa: S611 - the term is a parameter, the limit a number
            "SELECT rowid FROM catalog_book_search WHERE catalog_book_search MATCH %s"  # noqa: S608
            + limit,
            [term],
        )
        return Q(pk__in=keys)

    def with_external_ids(self, keys: Collection[str]) -> set[str]:
        """Return those of these external ids that a book has."""
        rows = self.filter(external_id__in=keys).order_by()
        return {key for key in rows.values_list("external_id", flat=True) if key}

    def owned(self, owner: Owner, key_parameter: Any) -> Self:
        """Keep the books of the authors or categories with these keys."""
        return self.filter(**{f"{owner}_id__in": self.unnested(key_parameter)})

    def counts(self, owner: Owner, keys: Iterable[int]) -> dict[int, int]:
        """Return the number of books by author or category; those without books are left out."""
        books = self.owned(owner, self.key_parameter(keys)).order_by()
        return dict(books.values_list(f"{owner}_id").annotate(models.Count("pk")))


def is_indexed(part: str) -> bool:
    """Return True if a text is long enough to have a trigram."""
    return len(folded(part)) >= TRIGRAM


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
    # null: a category without a description answers null, not an empty text
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
    # The indexes below serve them, and the pages of an owner.
    author = models.ForeignKey(
        Author, models.PROTECT, related_name="books", db_index=False
    )
    category = models.ForeignKey(
        Category,
        models.SET_NULL,
        related_name="books",
        null=True,
        blank=True,
        db_index=False,
    )
    # The key of the book in another system.
    external_id = models.CharField(max_length=NAME_LENGTH, null=True, blank=True)  # noqa: DJ001 - unique where set

    objects = BookQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(CodePoints("name"), "id", name="book_by_name"),
            models.Index(CodePoints("name_folded"), "id", name="book_by_folded_name"),
            models.Index(fields=["author", "id"], name="book_by_author"),
            models.Index(fields=["category", "id"], name="book_by_category"),
            # A category can have most of the books or hardly any: without these two, PostgreSQL
            # walks through all books to find the first ones of a small category.
            models.Index(
                "category", CodePoints("name"), "id", name="book_of_category_by_name"
            ),
            models.Index(
                fields=["category", "page_count", "id"],
                name="book_of_category_by_pages",
            ),
            models.Index(fields=["page_count", "id"], name="book_by_page_count"),
        ]
        constraints = [
            # Not `unique=True`: PostgreSQL would get a second index, for LIKE.
            models.UniqueConstraint(fields=["external_id"], name="book_external_id"),
            models.CheckConstraint(
                condition=models.Q(page_count__gte=0, page_count__lt=2**31),
                name="book_page_count_is_a_graphql_int",
            ),
        ]

    def __str__(self) -> str:
        return self.name


TypeName = Literal["Book", "Author", "Category"]
MODELS: dict[TypeName, type[Book | Author | Category]] = {
    "Book": Book,
    "Author": Author,
    "Category": Category,
}
