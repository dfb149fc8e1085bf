"""Revoke personal API tokens, by id or all of a user; they stop working at once."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from recording.accounts import personal_tokens
from recording.management.accounts import user_named
from recording.models import PersonalToken
from webhooks_core.management.bearer_tokens import with_ids
from webhooks_core.management.output import add_json_argument, format_output


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "ids",
            nargs="*",
            type=int,
            metavar="ID",
            help="as list_personal_tokens shows",
        )
        parser.add_argument("--user", help="together with --all")
        parser.add_argument("--all", action="store_true", help="all tokens of --user")
        add_json_argument(parser)

    def handle(
        self, *args: Any, ids: list[int], user: str | None, **options: Any
    ) -> None:
        is_all = options["all"]
        if bool(ids) == is_all or is_all != (user is not None):
            raise CommandError("give either the ids of tokens or --user USER --all")
        if user is None:
            rows = with_ids(PersonalToken.objects.all(), ids, noun="token")
        else:
            rows = PersonalToken.objects.filter(user=user_named(user).pk)
        revoked = len(personal_tokens.revoke(rows))
        data, text = {"revoked": revoked}, f"revoked {revoked}"
        self.stdout.write(format_output(data, text, as_json=options["json"]))
