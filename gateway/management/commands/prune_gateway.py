"""Remove old decisions, documents, idempotency keys and portal links; a worker does so hourly."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gateway import retention
from webhooks_core.management.output import JSONCommand, format_output


class Command(JSONCommand):
    help = __doc__

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        # Until nothing is left: a command has no time-out.
        total = dict.fromkeys(asdict(retention.Removed()), 0)
        while (removed := retention.remove_old()) != retention.Removed():
            for name, count in asdict(removed).items():
                total[name] += count
        counts = (f"{n} {name.replace('_', ' ')}" for name, n in total.items())
        words = f"removed {', '.join(counts)}"
        self.stdout.write(format_output(total, words, as_json=json))
