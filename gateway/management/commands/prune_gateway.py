"""Remove old decisions, documents, idempotency keys and portal links; a worker does so hourly."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
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
        total = dict.fromkeys(asdict(retention.Removed()), 0)
        while (removed := retention.remove_old()) != retention.Removed():
            for name, count in asdict(removed).items():
                total[name] += count
        counts = (f"{n} {name.replace('_', ' ')}" for name, n in total.items())
        words = f"removed {', '.join(counts)}"
        self.stdout.write(format_output(total, words, as_json=json))
