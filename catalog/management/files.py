"""What import_catalog and export_catalog share."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError

from catalog.bulk import FORMATS


class FileCommand(BaseCommand):
    """A command on one catalogue file that reports a number of books."""

    done = ""  # what happened to the books

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", type=Path, help="a file that ends in .csv or .jsonl"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, file: Path, json: bool, **options: Any) -> None:
        if file.suffix not in FORMATS:
            raise CommandError("The file's name must end in .csv or .jsonl.")
        try:
            books = self.run(file)
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}") from error
        document = orjson.dumps({self.done: books}).decode()
        noun = "book" if books == 1 else "books"
        self.stdout.write(document if json else f"{books:,} {noun} {self.done}.")

    def run(self, file: Path) -> int:
        """Process the file and return the number of books."""
        raise NotImplementedError
