"""Add the books of a CSV file: all of them, or none if a line is faulty."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError
from django.db import IntegrityError

from catalog import importing


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", type=Path, help="a CSV file with a header, in UTF-8"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, file: Path, json: bool, **options: Any) -> None:
        try:
            added = importing.load(file)
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}") from error
        except importing.ImportRefusedError as error:
            raise CommandError(f"Nothing was imported.\n{error}") from error
        except IntegrityError as error:
            raise CommandError(
                "Nothing was imported: meanwhile an author or a category was deleted. "
                "Repeat the import."
            ) from error
        noun = "book" if added == 1 else "books"
        document = orjson.dumps({"added": added}).decode()
        self.stdout.write(document if json else f"{added:,} {noun} added.")
