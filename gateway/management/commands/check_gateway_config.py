"""Check a gateway configuration file; name file, line and key of every fault."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway import configuration


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="YAML, as GATEWAY_CONFIG names")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            found = configuration.load(file)
        except configuration.ConfigurationError as error:
            raise CommandError(str(error)) from error
        subscriptions = len(found.webhooks.subscriptions)
        self.stdout.write(
            f"{file}: sound; {subscriptions} static subscriptions, "
            f"{len(found.models)} models"
        )
