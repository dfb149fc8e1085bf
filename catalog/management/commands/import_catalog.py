"""Add the books of a CSV or JSON Lines file: all of them, or none when a line is faulty."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError

from catalog import bulk

WIDTH = 40


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="ends in .csv or .jsonl")
        parser.add_argument("--json", action="store_true", help="for machines")

    def handle(self, *args: Any, file: Path, json: bool, **options: Any) -> None:
        if file.suffix not in bulk.FORMATS:
            raise CommandError("The file's name must end in .csv or .jsonl.")
        try:
            added = bulk.load(file, progress=self.bar(file))
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}") from error
        except bulk.ImportRefusedError as error:
            raise CommandError(f"Nothing was imported.\n{error}") from error
        self.stderr.write("", ending="\n" if self.stderr.isatty() else "")
        told = orjson.dumps({"added": added}).decode()
        self.stdout.write(told if json else f"{added:,} books added.")

    def bar(self, file: Path) -> Any:
        """Return what draws the progress on a terminal, and does nothing elsewhere."""

        def draw(done: int) -> None:
            share = done / total
            drawn = "#" * int(WIDTH * share)
            self.stderr.write(f"\r[{drawn:<{WIDTH}}] {share:4.0%}", ending="")
            self.stderr.flush()

        if not self.stderr.isatty():
            return lambda _: None
        total = file.stat().st_size
        return draw
