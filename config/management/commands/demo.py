"""Make one round trip of each product against a running local instance, and print a line of each."""

from __future__ import annotations

from argparse import ArgumentParser
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from config.demo import data, round_trips
from recording.accounts import personal_tokens


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--url",
            default=settings.BASE_URL,
            help="the address of the instance, on this database (%(default)s)",
        )
        parser.add_argument(
            "--user", default=data.USER, help="the account to use (%(default)s)"
        )

    def handle(self, *args: Any, url: str, user: str, **options: Any) -> None:
        account = get_user_model().objects.filter(username=user).first()
        if account is None:
            raise CommandError(f"there is no user {user!r}: name one with --user")
        created = personal_tokens.create(user=account, days=1, name="demo command")
        instance = round_trips.Instance(url.rstrip("/"), created.text)
        trips = (
            partial(round_trips.add_a_book, instance),
            partial(round_trips.deliver_a_summary, instance, account),
            partial(round_trips.chat, instance),
        )
        try:
            for trip in trips:
                self.stdout.write(f"✔ {trip()}")
        finally:
            created.token.delete()
