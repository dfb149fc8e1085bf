"""Write every book to a CSV or JSON Lines file that import_catalog reads."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError

from catalog import bulk


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="ends in .csv or .jsonl")
        parser.add_argument("--json", action="store_true", help="for machines")

    def handle(self, *args: Any, file: Path, json: bool, **options: Any) -> None:
        if file.suffix not in bulk.FORMATS:
            raise CommandError("The file's name must end in .csv or .jsonl.")
        draft = file.with_name(f"{file.name}.part")
        try:
            with draft.open("w", encoding="utf-8", newline="") as target:
                written = bulk.dump(target, file.suffix)
            draft.replace(file)
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}") from error
        told = orjson.dumps({"written": written}).decode()
        self.stdout.write(told if json else f"{written:,} books written.")
