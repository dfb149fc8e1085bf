"""Remove policy decisions and documents that are older than the settings say; a worker does, hourly."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from gateway import retention
from webhooks_core.cli.output import add_json_argument, format_output


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_json_argument(parser)

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        # As often as it takes: nobody's time-out is waiting here.
        decisions = documents = 0
        while (removed := retention.remove_old()) != retention.Removed():
            decisions += removed.decisions
            documents += removed.documents
        told = {"decisions": decisions, "documents": documents}
        words = f"removed {decisions} decisions, {documents} documents"
        self.stdout.write(format_output(told, words, as_json=json))
