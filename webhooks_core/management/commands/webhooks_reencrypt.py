"""Encrypt every kept secret with the first of WEBHOOK_SECRET_KEYS, so that the others may go."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webhooks_core.cli.output import add_json_argument, format_output
from webhooks_core.models import reencryption


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_json_argument(parser)

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        done = reencryption.reencrypt()
        words = f"{done.resealed} secrets are under the first key"
        self.stdout.write(format_output(done._asdict(), words, as_json=json))
        if done.unreadable:
            raise CommandError(
                f"{done.unreadable} secrets cannot be decrypted: add the key that they were "
                "made with to WEBHOOK_SECRET_KEYS"
            )
