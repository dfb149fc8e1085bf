"""Whole catalogues as files, one book per row: CSV with a header, or JSON Lines.

Fields: `name`, `pageCount`, `authorFirstName`, `authorLastName`, and optionally `categoryName`,
`categoryDescription` and `externalId`. An import looks up an author by both names and a category by its
name, letter case included, and creates those that are missing. In CSV an empty cell is null, and
a description of `""` is an empty text.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO, Any

import orjson
from django.db import connection, transaction

from catalog import book_rows
from catalog.errors import BadUserInputError
from catalog.models import Author, Book, Category
from catalog.text_checks import NAME_LENGTH, check_name, check_text

BATCH = 2_000
MOST_FAULTS = 20
LARGEST_COUNT = 2**31 - 1
FORMATS = {".csv", ".jsonl"}

# Each field of a file, and the lookup of a book that an export reads.
COLUMNS = {
    "name": "name",
    "pageCount": "page_count",
    "authorFirstName": "author__first_name",
    "authorLastName": "author__last_name",
    "categoryName": "category__name",
    "categoryDescription": "category__description",
    "externalId": "external_id",
}
FIELDS = tuple(COLUMNS)
REQUIRED = FIELDS[:4]
CELL = re.compile(r'("(?:[^"]|"")*"|[^,\r\n]*)(?:,|[\r\n]+|$)')
EMPTY_TEXT = '""'

Record = dict[str, Any]
Named = tuple[str, str | None]  # a category: name and description


class ImportRefusedError(Exception):
    """A file that was not imported; the message has one fault per line."""


def check_fields(record: Record) -> None:
    """Raise BadUserInputError for a record, or a header, with other fields than a book's."""
    for field in record:
        if field not in COLUMNS:
            shown = field[:NAME_LENGTH]  # a message for a terminal
            raise BadUserInputError(f"{shown!r} is not a known field.", field=shown)
    for field in REQUIRED:
        if record.get(field) is None:
            raise BadUserInputError(f"{field} is missing.", field=field)


def check_record(record: Record) -> None:
    """Raise BadUserInputError for a record that is not a book."""
    check_fields(record)
    pages = record["pageCount"]
    if type(pages) is not int or not 0 <= pages <= LARGEST_COUNT:
        raise BadUserInputError(
            f"pageCount must be a whole number from 0 to {LARGEST_COUNT}.",
            field="pageCount",
        )
    for field in FIELDS:
        text = record.get(field)
        if field == "pageCount" or text is None:
            continue
        if not isinstance(text, str):
            raise BadUserInputError(f"{field} must be text.", field=field)
        check = check_text if field == "categoryDescription" else check_name
        check(text, field=field)


class Lines:
    """The lines of a file, and the number of the last that was read."""

    def __init__(self, file: IO[str]) -> None:
        self.file, self.number = file, 0

    def __iter__(self) -> Iterator[str]:
        for line in self.file:
            self.number += 1
            yield line


def read_csv(file: Lines) -> Iterator[Record]:
    """Yield the records; an empty optional cell is an absent field."""
    # Of the current row, because the reader does not tell "" from nothing.
    lines: list[str] = []

    def watched() -> Iterator[str]:
        for line in file:
            lines.append(line)
            yield line

    rows = csv.DictReader(watched(), strict=True)
    fields = list(rows.fieldnames or ())
    if len(set(fields)) != len(fields):
        raise csv.Error("the header names a field twice")
    if fields:
        check_fields(dict.fromkeys(fields, ""))
    lines.clear()
    for row in rows:
        if None in row or None in row.values():
            raise csv.Error("the row has another number of cells than the header")
        cells = CELL.findall("".join(lines).lstrip("\r\n"))
        lines.clear()
        record: Record = {
            field: text
            for (field, text), cell in zip(row.items(), cells, strict=False)
            if text
            or field in REQUIRED
            or (field == "categoryDescription" and cell == EMPTY_TEXT)
        }
        pages = record.get("pageCount", "")
        if pages.isascii() and pages.isdigit() and len(pages) <= 10:
            record["pageCount"] = int(pages)
        yield record


def csv_row(values: Iterable[Any]) -> str:
    """Return a row in which null is an empty cell and the empty text is quoted.

    csv.writer of Python 3.11 does not quote a lone carriage return, and writes both alike.
    """
    cells = []
    for value in values:
        text = "" if value is None else str(value)
        if value == "" or re.search(r'[",\r\n]', text):
            text = '"' + text.replace('"', '""') + '"'
        cells.append(text)
    return ",".join(cells) + "\n"


def read_json_lines(file: Lines) -> Iterator[Record]:
    """Yield the records; empty lines are skipped."""
    for line in file:
        if line.strip():
            record = orjson.loads(line)
            if not isinstance(record, dict):
                raise ValueError("not a JSON object")
            yield record


def valid_records(file: IO[str], suffix: str, faults: list[str]) -> Iterator[Record]:
    """Yield the valid records and collect the faults of the others; stop after too many."""
    lines = Lines(file)
    rows = read_csv(lines) if suffix == ".csv" else read_json_lines(lines)
    while len(faults) < MOST_FAULTS:
        try:
            record = next(rows)
            check_record(record)
        except StopIteration:
            return
        except BadUserInputError as error:
            faults.append(f"line {lines.number}: {error}")
        except UnicodeDecodeError as error:
            # The file is decoded in blocks; this one begins in the line after the last.
            before = error.object[: error.start] + b"."
            faults.append(f"line {lines.number + len(before.splitlines())}: {error}")
            return
        except (csv.Error, ValueError) as error:
            # The reader cannot continue after text that it does not understand.
            faults.append(f"line {lines.number}: {error}")
            return
        else:
            yield record
    faults.append("… and perhaps more")


class Owners:
    """The keys of authors and categories by name.

    Categories that the import itself adds differ by their descriptions too; a record without a
    description takes the first of the name.
    """

    def __init__(self) -> None:
        # The oldest of several with one name comes last, and so wins.
        authors = Author.objects.order_by("-pk")
        categories = Category.objects.order_by("-pk")
        names = authors.values_list("first_name", "last_name", "pk")
        self.authors = {(first, last): key for first, last, key in names}
        self.categories = dict(categories.values_list("name", "pk"))
        self.added: dict[Named, int] = {}

    def create_missing(self, batch: list[Record]) -> None:
        """Create the authors and categories of a batch that do not exist yet."""
        names = dict.fromkeys(map(author_name, batch))
        authors = [
            Author(first_name=first_name, last_name=last_name)
            for first_name, last_name in names
            if (first_name, last_name) not in self.authors
        ]
        for author in Author.objects.bulk_create(authors, BATCH):
            self.authors[author.first_name, author.last_name] = author.pk
        added: dict[Named, Category] = {}
        for named in map(category_name, batch):
            name, description = named
            if name and not self.category(named) and named not in added:
                added[named] = Category(name=name, description=description)
                added.setdefault((name, None), added[named])
        categories = [
            row for key, row in added.items() if key == (row.name, row.description)
        ]
        Category.objects.bulk_create(categories, BATCH)
        for key, row in added.items():
            self.added.setdefault(key, row.pk)

    def category(self, named: Named) -> int | None:
        return self.categories.get(named[0]) or self.added.get(named)

    def row(self, record: Record) -> book_rows.BookRow:
        return book_rows.book_row(
            record["name"],
            record["pageCount"],
            self.authors[author_name(record)],
            self.category(category_name(record)),
            record.get("externalId"),
        )


def author_name(record: Record) -> tuple[str, str]:
    return record["authorFirstName"], record["authorLastName"]


def category_name(record: Record) -> Named:
    return record.get("categoryName", ""), record.get("categoryDescription")


def taken(batch: list[Record]) -> list[str]:
    """Return a fault for each external id of a batch that a book has, or that comes twice."""
    keys = [record["externalId"] for record in batch if record.get("externalId")]
    used = Book.objects.with_external_ids(keys)
    used |= {key for key, count in Counter(keys).items() if count > 1}
    return [f"externalId {key!r} is taken." for key in sorted(used)[:MOST_FAULTS]]


@transaction.atomic
def load(path: Path, *, progress: Callable[[int], None] = lambda _: None) -> int:
    """Import a file, all of it or nothing; return how many books were added.

    Raise ImportRefusedError with up to MOST_FAULTS faults. `progress` is called with the
    number of bytes read so far.
    """
    faults: list[str] = []
    added, owners = 0, Owners()
    with path.open("rb") as raw, book_rows.indexes_built_last():
        file = TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        records = valid_records(file, path.suffix, faults)
        while batch := list(islice(records, BATCH)):
            faults += taken(batch)
            if faults:
                continue  # nothing will be kept: only look for further faults
            owners.create_missing(batch)
            book_rows.insert(list(map(owners.row, batch)))
            added += len(batch)
            progress(raw.tell())
        if faults:
            raise ImportRefusedError("\n".join(faults))
    if connection.vendor == "postgresql":
        # Until autovacuum comes, it would read every book that a search finds to sort a page.
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE catalog_book, catalog_author, catalog_category")
    return added


def dump(file: IO[str], suffix: str) -> int:
    """Export every book by id; return how many there are."""
    books = Book.objects.order_by("pk").values_list(*COLUMNS.values())
    if suffix == ".csv":
        file.write(csv_row(FIELDS))
    written = 0
    for row in books.iterator(BATCH):
        written += 1
        if suffix == ".csv":
            file.write(csv_row(row))
        else:
            pairs = zip(FIELDS, row, strict=True)
            record = {field: value for field, value in pairs if value is not None}
            file.write(orjson.dumps(record).decode() + "\n")
    return written
