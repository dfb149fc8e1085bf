"""Repair the rows that a crash left behind, and remove those past their retention."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from webhooks_core.management.output import (
    add_json_argument,
    counted,
    format_output,
)
from webhooks_core.upkeep.sweep import sweep


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_json_argument(parser)

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        report = sweep()
        counts = (
            counted(report.expired_leases, "expired lease"),
            counted(report.repaired_queues, "repaired queue"),
            counted(report.removed, "old event"),
        )
        text = ", ".join(counts)
        self.stdout.write(format_output(report._asdict(), text, as_json=json))
