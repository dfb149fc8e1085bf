"""Import a recording. Subscribers receive summary.completed."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
from django.core.management.base import BaseCommand, CommandError

from recording.accounts.owners import InactiveAccountError, user_named
from recording.library import importing
from recording.library.files import MAX_BYTES, RecordingFileError
from recording.webhooks import SUMMARY_COMPLETED_SAMPLE


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("file", nargs="?", help="JSON, or - for standard input")
        source.add_argument(
            "--sample", action="store_true", help="a sample, each time with a new id"
        )
        parser.add_argument("--account", required=True, metavar="USER")
        parser.add_argument(
            "--no-event", action="store_true", help="store only; publish nothing"
        )

    def handle(
        self, *, file: str | None, account: str, no_event: bool, **_: Any
    ) -> None:
        user = user_named(account)
        raw = self.sample() if file is None else self.read(file)
        try:
            imported = importing.import_recording(
                account=user, raw=raw, publish_event=not no_event
            )
        except RecordingFileError as error:
            raise CommandError(f"{file}: {error}; nothing was stored") from error
        except InactiveAccountError as error:
            raise CommandError(f"{error}; nothing was stored") from error
        if imported.ignored:
            self.stderr.write(f"ignored unknown fields: {', '.join(imported.ignored)}")
        done = "imported" if imported.is_new else "updated"
        event = imported.event.public_id if imported.event else "no event"
        self.stdout.write(f"{done} {imported.recording.audio_id}: {event}")

    def sample(self) -> bytes:
        audio_id = f"aud_{uuid4().hex[:12]}"
        return orjson.dumps({**SUMMARY_COMPLETED_SAMPLE, "audio_id": audio_id})

    def read(self, file: str) -> bytes:
        """Return the file's bytes, one more than the limit at most. Raises CommandError."""
        try:
            if file == "-":
                return sys.stdin.buffer.read(MAX_BYTES + 1)
            with Path(file).open("rb") as stream:
                return stream.read(MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CommandError(f"{file}: {reason}") from error
