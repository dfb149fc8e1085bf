"""Encrypt every stored secret with the first of WEBHOOK_SECRET_KEYS, so that the others may go."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webhooks_core.management.output import (
    add_json_argument,
    counted,
    format_output,
)
from webhooks_core.models import reencryption


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_json_argument(parser)

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        counts = reencryption.reencrypt()
        are = "is" if counts.reencrypted == 1 else "are"
        secrets = counted(counts.reencrypted, "secret")
        text = f"{secrets} {are} encrypted with the first key"
        self.stdout.write(format_output(counts._asdict(), text, as_json=json))
        if counts.unreadable:
            raise CommandError(
                f"{counts.unreadable} secrets cannot be decrypted: add the key that they were "
                "encrypted with to WEBHOOK_SECRET_KEYS"
            )
