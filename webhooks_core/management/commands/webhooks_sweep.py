"""Repair the rows that a crash left behind, and remove those past their retention."""

from __future__ import annotations

from typing import Any

from webhooks_core.management.output import (
    JSONCommand,
    counted,
    format_output,
)
from webhooks_core.upkeep.sweep import sweep


class Command(JSONCommand):
    help = __doc__

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        report = sweep()
        counts = (
            counted(report.expired_leases, "expired lease"),
            counted(report.repaired_queues, "repaired queue"),
            counted(report.removed, "old event"),
        )
        text = ", ".join(counts)
        self.stdout.write(format_output(report._asdict(), text, as_json=json))
