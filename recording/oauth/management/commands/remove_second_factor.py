"""Remove the second step of an account's login, for somebody who lost their device."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from recording.accounts import second_factors
from recording.management.accounts import user_named
from webhooks_core.management.output import add_json_argument, format_output


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user")
        add_json_argument(parser)

    def handle(self, *args: Any, user: str, json: bool, **options: Any) -> None:
        removed = second_factors.remove(user_named(user))
        text = "removed" if removed else "there was none"
        self.stdout.write(format_output({"removed": removed}, text, as_json=json))
