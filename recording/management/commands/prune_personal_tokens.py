"""Delete the personal API tokens that are revoked, expired or 90 days unused."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from recording.accounts import personal_tokens
from webhooks_core.management.output import add_json_argument, format_output


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days", type=int, default=0, help="only those that ended so long ago"
        )
        add_json_argument(parser)

    def handle(self, *args: Any, days: int, json: bool, **options: Any) -> None:
        if not 0 <= days <= personal_tokens.MAX_DAYS:
            raise CommandError(
                f"--days must be between 0 and {personal_tokens.MAX_DAYS}"
            )
        deleted = personal_tokens.prune(days=days)
        data = {"deleted": deleted}
        self.stdout.write(format_output(data, f"deleted {deleted}", as_json=json))
