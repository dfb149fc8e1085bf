"""Whole catalogues as files, one book a row: CSV with a header, or JSON Lines.

Fields: `name`, `pageCount`, `authorFirstName`, `authorLastName`, and optionally `categoryName`
and `categoryDescription`. An author is found by both names and a category by its name, letter
case and all; those that are missing are made.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO, Any

import orjson
from django.db import transaction

from catalog.errors import BadUserInputError
from catalog.models import Author, Book, Category
from catalog.text import DESCRIPTION_LENGTH, checked, checked_optional

BATCH = 2_000
MOST_FAULTS = 20
LARGEST_COUNT = 2**31 - 1
FORMATS = {".csv", ".jsonl"}


class ImportRefusedError(Exception):
    """A file that was not imported; `faults` tells why, line by line."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Record:
    """One row of a file; the names of the fields are those of the file."""

    name: str
    pageCount: int  # noqa: N815 - as in the file
    authorFirstName: str  # noqa: N815
    authorLastName: str  # noqa: N815
    categoryName: str | None = None  # noqa: N815
    categoryDescription: str | None = None  # noqa: N815


FIELDS = tuple(field.name for field in fields(Record))
REQUIRED = FIELDS[:4]


def record(values: dict[str, Any]) -> Record:
    """Return a checked record, or raise BadUserInputError."""
    for field in values:
        if field not in FIELDS:
            raise BadUserInputError(f"{field!r} is not a known field.", field=field)
    for field in REQUIRED:
        if values.get(field) is None:
            raise BadUserInputError(f"{field} is missing.", field=field)
    pages = values["pageCount"]
    if type(pages) is not int or not 0 <= pages <= LARGEST_COUNT:
        raise BadUserInputError(
            f"pageCount must be a whole number from 0 to {LARGEST_COUNT}.",
            field="pageCount",
        )
    for field in FIELDS:
        text = values.get(field)
        if field != "pageCount" and text is not None:
            check_text(text, field)
    return Record(**values)


def check_text(text: Any, field: str) -> None:
    if not isinstance(text, str):
        raise BadUserInputError(f"{field} must be text.", field=field)
    if field == "categoryDescription":
        checked_optional(text, field=field, length=DESCRIPTION_LENGTH)
    else:
        checked(text, field=field)


def from_csv(file: IO[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and values; an empty optional cell is an absent one."""
    rows = csv.DictReader(file, strict=True)
    if len(set(rows.fieldnames or ())) != len(rows.fieldnames or ()):
        raise csv.Error("the header names a field twice")
    for values in rows:
        if None in values or None in values.values():
            raise csv.Error("the row has another number of cells than the header")
        kept: dict[str, Any] = {
            field: text
            for field, text in values.items()
            if text or not field.startswith("category")
        }
        pages = kept.get("pageCount", "")
        if pages.isascii() and pages.isdigit() and len(pages) <= 10:
            kept["pageCount"] = int(pages)
        yield rows.line_num, kept


def from_json_lines(file: IO[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and values; empty lines are left out."""
    for number, line in enumerate(file, start=1):
        if line.strip():
            values = orjson.loads(line)
            if not isinstance(values, dict):
                raise ValueError("not a JSON object")
            yield number, values


def records(file: IO[str], kind: str, faults: list[str]) -> Iterator[Record]:
    """Yield the valid records and note the faults of the others; end after too many."""
    rows = from_csv(file) if kind == ".csv" else from_json_lines(file)
    number = 0
    while len(faults) < MOST_FAULTS:
        try:
            number, values = next(rows)
            yield record(values)
        except StopIteration:
            return
        except BadUserInputError as error:
            faults.append(f"line {number}: {error}")
        except (csv.Error, ValueError) as error:
            # The reader cannot go on behind text that it does not understand.
            faults.append(f"after line {number}: {error}")
            return
    faults.append("… and perhaps more")


class Owners:
    """The authors and categories that the records name, made where they are missing."""

    def __init__(self) -> None:
        self.authors: dict[tuple[str, str], int] = {}
        self.categories: dict[str, int] = {}
        for first, last, key in Author.objects.order_by("-pk").values_list(
            "first_name", "last_name", "pk"
        ):
            self.authors[first, last] = key  # the oldest of several comes last
        for name, key in Category.objects.order_by("-pk").values_list("name", "pk"):
            self.categories[name] = key

    def make(self, batch: list[Record]) -> None:
        """Make what the records of a batch name and is not there yet."""
        people = {
            (one.authorFirstName, one.authorLastName): None
            for one in batch
            if (one.authorFirstName, one.authorLastName) not in self.authors
        }
        rows = [Author(first_name=first, last_name=last) for first, last in people]
        for author in Author.objects.bulk_create(rows, BATCH):
            self.authors[author.first_name, author.last_name] = author.pk
        kinds = {
            one.categoryName: one.categoryDescription
            for one in reversed(batch)
            if one.categoryName and one.categoryName not in self.categories
        }
        made = [Category(name=name, description=text) for name, text in kinds.items()]
        for category in Category.objects.bulk_create(made, BATCH):
            self.categories[category.name] = category.pk

    def book(self, one: Record) -> Book:
        return Book(
            name=one.name,
            page_count=one.pageCount,
            author_id=self.authors[one.authorFirstName, one.authorLastName],
            category_id=self.categories[one.categoryName] if one.categoryName else None,
        )


@transaction.atomic
def load(path: Path, *, progress: Callable[[int], None] = lambda _: None) -> int:
    """Import a file, all of it or nothing; return how many books were added.

    Raise ImportRefusedError with up to MOST_FAULTS faults. `progress` is told how many bytes
    of the file were read.
    """
    faults: list[str] = []
    added, owners = 0, Owners()
    with path.open("rb") as raw:
        file = TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        rows = records(file, path.suffix, faults)
        while batch := list(islice(rows, BATCH)):
            if faults:
                continue  # nothing will be kept: only look for further faults
            owners.make(batch)
            Book.objects.bulk_create(map(owners.book, batch), BATCH)
            added += len(batch)
            progress(raw.tell())
    if faults:
        raise ImportRefusedError(faults)
    return added


def dump(file: IO[str], kind: str) -> int:
    """Export every book by id, in either format; return how many there are."""
    books = Book.objects.order_by("pk").values_list(
        "name",
        "page_count",
        "author__first_name",
        "author__last_name",
        "category__name",
        "category__description",
    )
    table = csv.writer(file, lineterminator="\n")
    if kind == ".csv":
        table.writerow(FIELDS)
    written = 0
    for row in books.iterator(BATCH):
        written += 1
        if kind == ".csv":
            table.writerow(row)
        else:
            values = {
                field: value
                for field, value in zip(FIELDS, row, strict=True)
                if value is not None
            }
            file.write(orjson.dumps(values).decode() + "\n")
    return written
