"""Remove policy decisions and documents past their retention; a worker also does this hourly."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from gateway import retention
from webhooks_core.management.output import add_json_argument, format_output


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_json_argument(parser)

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        # Until nothing is left: a command has no time-out.
        decisions = documents = 0
        while (removed := retention.remove_old()) != retention.Removed():
            decisions += removed.decisions
            documents += removed.documents
        values = {"decisions": decisions, "documents": documents}
        words = f"removed {decisions} decisions, {documents} documents"
        self.stdout.write(format_output(values, words, as_json=json))
