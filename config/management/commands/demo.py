"""Make one round trip of each product against a running local instance, and print a line of each."""

from __future__ import annotations

from argparse import ArgumentParser
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

    def handle(self, *args: Any, url: str, **options: Any) -> None:
        account = get_user_model().objects.filter(username=data.USER).first()
        if account is None:
            raise CommandError(f"there is no user {data.USER!r}: run `manage.py up`")
        created = personal_tokens.create(user=account, days=1, name="demo command")
        instance = round_trips.Instance(url.rstrip("/"), created.text)
        try:
            self.stdout.write(f"✔ {round_trips.add_a_book(instance)}")
            self.stdout.write(f"✔ {round_trips.deliver_a_summary(instance, account)}")
            self.stdout.write(f"✔ {round_trips.chat(instance)}")
        finally:
            created.token.delete()
