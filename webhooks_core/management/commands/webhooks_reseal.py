"""Encrypt every kept secret with the first of WEBHOOK_SECRET_KEYS, so that the others may go."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError

from webhooks_core import sealed


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="for machines")

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        done = sealed.reseal()
        if json:
            self.stdout.write(orjson.dumps(done._asdict()).decode())
        else:
            self.stdout.write(f"{done.resealed} secrets are under the first key")
        if done.unreadable:
            raise CommandError(
                f"{done.unreadable} secrets cannot be decrypted: add the key that they were "
                "made with to WEBHOOK_SECRET_KEYS"
            )
