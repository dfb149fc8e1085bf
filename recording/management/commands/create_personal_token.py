"""Create a personal API token and print it, this once."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from recording.accounts import personal_tokens
from recording.accounts.owners import user_named


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="whose token it is")
        parser.add_argument(
            "--days", type=int, required=True, help="until it expires, 1 to 365"
        )
        parser.add_argument("--name", default="", help="a name for lists")

    def handle(self, *, user: str, days: int, name: str, **_: Any) -> None:
        account = user_named(user)
        try:
            created = personal_tokens.create(user=account, days=days, name=name)
        except personal_tokens.TokenInputError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(created.text)
