"""List personal API tokens: never the tokens themselves, only their first characters."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from recording.management.accounts import user_named
from recording.models import PersonalToken
from webhooks_core.management.bearer_tokens import described
from webhooks_core.management.output import add_json_argument, write_list


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", nargs="?", help="only the tokens of this user")
        add_json_argument(parser)

    def handle(self, *args: Any, user: str | None, **options: Any) -> None:
        rows = PersonalToken.objects.select_related("user").order_by("id")
        if user is not None:
            rows = rows.filter(user=user_named(user).pk)
        now = timezone.now()
        listed = [
            described(row, now, noun="token", user=row.user.get_username())
            for row in rows.iterator()
        ]
        write_list(self, listed, as_json=options["json"], noun="personal tokens")
