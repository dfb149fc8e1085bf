"""A CSV file of books: one per row, with its author and its category by their names."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

from django.db import connection, transaction

from catalog.errors import BadUserInputError
from catalog.models import Author, Book, Category
from catalog.texts import NAME_LENGTH, check_name, check_text

BATCH = 2_000
MOST_FAULTS = 20
LARGEST_COUNT = 2**31 - 1
REQUIRED = ("name", "pageCount", "authorFirstName", "authorLastName")
FIELDS = (*REQUIRED, "categoryName", "categoryDescription")

Record = dict[str, Any]


class ImportRefusedError(Exception):
    """A file that was not imported; the message has one fault per line."""


def check_header(fields: list[str]) -> None:
    """Raise csv.Error for a header that misses a field, repeats one, or has an unknown one."""
    for field in fields:
        if field not in FIELDS or fields.count(field) > 1:
            raise csv.Error(f"the header must not have {field[:NAME_LENGTH]!r} here")
    for field in REQUIRED:
        if field not in fields:
            raise csv.Error(f"the header has no {field}")


def checked(row: Record) -> Record:
    """Return a row with its number of pages; raise csv.Error or BadUserInputError."""
    if None in row or None in row.values():
        raise csv.Error("the row has another number of cells than the header")
    pages = row["pageCount"]
    is_number = pages.isascii() and pages.isdigit() and len(pages) <= 10
    if not is_number or int(pages) > LARGEST_COUNT:
        message = f"pageCount must be a whole number from 0 to {LARGEST_COUNT}."
        raise BadUserInputError(message, field="pageCount")
    for field in ("name", "authorFirstName", "authorLastName"):
        check_name(row[field], field=field)
    if row.get("categoryName"):
        check_name(row["categoryName"], field="categoryName")
    check_text(row.get("categoryDescription", ""), field="categoryDescription")
    return {**row, "pageCount": int(pages)}


def valid_rows(file: IO[str], faults: list[str]) -> Iterator[Record]:
    """Yield the valid rows and collect the faults of the others; stop after too many."""
    rows = csv.DictReader(file, strict=True)
    try:
        check_header(list(rows.fieldnames or ()))
        for row in rows:
            try:
                yield checked(row)
            except BadUserInputError as error:
                faults.append(f"line {rows.reader.line_num}: {error}")
            if len(faults) == MOST_FAULTS:
                faults.append("… and perhaps more")
                return
    # The reader cannot continue after text that it does not understand.
    except csv.Error as error:
        faults.append(f"line {rows.reader.line_num}: {error}")
    except UnicodeDecodeError as error:  # of a block of lines
        faults.append(f"behind line {rows.reader.line_num}: {error}")


class Owners:
    """The keys of authors and categories by name, letter case included; the oldest of a name."""

    def __init__(self) -> None:
        authors = Author.objects.order_by("-pk")
        names = authors.values_list("first_name", "last_name", "pk")
        self.authors = {(first, last): key for first, last, key in names}
        categories = Category.objects.order_by("-pk")
        self.categories = dict(categories.values_list("name", "pk"))

    def create_missing(self, rows: list[Record]) -> None:
        authors = {author_name(row): None for row in rows}
        for author in Author.objects.bulk_create(
            Author(first_name=first, last_name=last)
            for first, last in authors
            if (first, last) not in self.authors
        ):
            self.authors[author.first_name, author.last_name] = author.pk
        categories: dict[str, str | None] = {}
        for row in rows:
            if name := row.get("categoryName"):
                description = row.get("categoryDescription") or None
                categories.setdefault(name, description)
        for category in Category.objects.bulk_create(
            Category(name=name, description=description)
            for name, description in categories.items()
            if name not in self.categories
        ):
            self.categories[category.name] = category.pk

    def book(self, row: Record) -> Book:
        category = row.get("categoryName")
        return Book(
            name=row["name"],
            page_count=row["pageCount"],
            author_id=self.authors[author_name(row)],
            category_id=self.categories[category] if category else None,
        )


def author_name(row: Record) -> tuple[str, str]:
    return row["authorFirstName"], row["authorLastName"]


@transaction.atomic
def load(path: Path) -> int:
    """Add the books of a file, all of them or none, and return how many they are.

    Authors and categories that are missing are added. Raise ImportRefusedError.
    """
    faults: list[str] = []
    added, owners = 0, Owners()
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = valid_rows(file, faults)
        while batch := list(islice(rows, BATCH)):
            if not faults:  # otherwise nothing will be kept: only look for further ones
                owners.create_missing(batch)
                Book.objects.bulk_create(map(owners.book, batch))
                added += len(batch)
    if faults:
        raise ImportRefusedError("\n".join(faults))
    if connection.vendor == "postgresql":
        with (
            connection.cursor() as cursor
        ):  # until autovacuum comes, plans would be wrong
            cursor.execute("ANALYZE catalog_book, catalog_author, catalog_category")
    return added
