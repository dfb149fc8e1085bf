"""Add the books of a CSV or JSON Lines file: all of them, or none if a line is faulty."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from django.core.management.base import CommandError
from django.db import IntegrityError

from catalog import bulk
from catalog.management.files import FileCommand

WIDTH = 40


class Command(FileCommand):
    help = __doc__
    done = "added"

    def run(self, file: Path) -> int:
        try:
            added = bulk.load(file, progress=self.progress_bar(file))
        except bulk.ImportRefusedError as error:
            raise CommandError(f"Nothing was imported.\n{error}") from error
        except IntegrityError as error:
            raise CommandError(
                "Nothing was imported: meanwhile an author or a category was deleted, or "
                "another book got an externalId of the file. Repeat the import."
            ) from error
        self.stderr.write("", ending="\n" if self.stderr.isatty() else "")
        return added

    def progress_bar(self, file: Path) -> Callable[[int], None]:
        """Return a function that draws the progress on a terminal, and does nothing elsewhere."""

        def draw(done: int) -> None:
            share = done / total
            bar = "#" * int(WIDTH * share)
            self.stderr.write(f"[{bar:<{WIDTH}}] {share:4.0%}", ending="\r")
            self.stderr.flush()

        if not self.stderr.isatty():
            return lambda _: None
        total = file.stat().st_size
        return draw
