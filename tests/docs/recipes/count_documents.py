"""Count the ingested documents."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from gateway.models import Document
from webhooks_core.management.output import add_json_argument, format_output


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_json_argument(parser)

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        count = Document.objects.count()
        words = f"{count} documents"
        self.stdout.write(format_output({"documents": count}, words, as_json=json))
