"""Import recordings from a file: JSON, an array, or JSON Lines. Subscribers receive summary.completed."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from recording.accounts.locks import InactiveAccountError
from recording.library import files, importing
from recording.library.files import MAX_BYTES, RecordingFileError
from recording.library.importing import Imported
from recording.management.accounts import user_named
from webhooks_core.management.output import add_json_argument, format_output


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="the file, or - for standard input")
        parser.add_argument("--account", required=True, metavar="USER")
        parser.add_argument(
            "--no-event", action="store_true", help="store only; publish nothing"
        )
        add_json_argument(parser)

    def handle(
        self, *args: Any, file: str, account: str, no_event: bool, **options: Any
    ) -> None:
        user, raw = user_named(account), self.read(file)
        try:
            # All are checked before one is stored.
            recordings = files.read_all(raw)
        except RecordingFileError as error:
            raise CommandError(f"{file}: {error}; nothing was stored") from error
        for number, recording in enumerate(recordings):
            try:
                imported = importing.import_file(
                    account=user, file=recording, publish_event=not no_event
                )
            except InactiveAccountError as error:
                stored = f"the first {number} were" if number else "nothing was"
                raise CommandError(f"{error}; {stored} stored") from error
            self.report(imported, as_json=options["json"])

    def report(self, imported: Imported, *, as_json: bool) -> None:
        """Print a line for a recording, as JSON if wanted."""
        if imported.ignored:
            self.stderr.write(f"ignored unknown fields: {', '.join(imported.ignored)}")
        done = "imported" if imported.is_new else "updated"
        event_id = imported.event.public_id if imported.event else None
        data = {
            "audio_id": imported.recording.audio_id,
            "done": done,
            "event_id": event_id,
            "ignored": list(imported.ignored),
        }
        text = f"{done} {imported.recording.audio_id}: {event_id or 'no event'}"
        self.stdout.write(format_output(data, text, as_json=as_json))

    def read(self, file: str) -> bytes:
        """Return the file's bytes, one more than the limit at most."""
        try:
            if file == "-":
                return sys.stdin.buffer.read(MAX_BYTES + 1)
            with Path(file).open("rb") as stream:
                return stream.read(MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CommandError(f"{file}: {reason}") from error
