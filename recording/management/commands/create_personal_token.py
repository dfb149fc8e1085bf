"""Create a personal API token and print it, this once."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from recording.accounts import personal_tokens, security_log
from recording.management.accounts import user_named
from webhooks_core.management.output import add_json_argument, format_output
from webhooks_core.times import iso


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="whose token it is")
        parser.add_argument(
            "--days", type=int, required=True, help="until it expires, 1 to 365"
        )
        parser.add_argument("--name", default="", help="a name for lists")
        add_json_argument(parser)

    @transaction.atomic
    def handle(
        self, *args: Any, user: str, days: int, name: str, json: bool, **options: Any
    ) -> None:
        try:
            created = personal_tokens.create(
                user=user_named(user), days=days, name=name
            )
        except personal_tokens.TokenInputError as error:
            raise CommandError(str(error)) from error
        token, kind = created.token, security_log.Kind.TOKEN_CREATED
        security_log.record(kind, token.user, subject=token.display_prefix)
        data = {
            "id": token.pk,
            "token": created.text,
            "expires_at": iso(token.expires_at),
        }
        self.stdout.write(format_output(data, created.text, as_json=json))
