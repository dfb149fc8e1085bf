"""Delete expired codes and tokens, and applications that registered themselves and are unused."""

from __future__ import annotations

from typing import Any

from recording.oauth import prune
from webhooks_core.management.output import JSONCommand, format_output


class Command(JSONCommand):
    help = __doc__

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        counts = prune.prune()
        values = {name.replace(" ", "_"): count for name, count in counts.items()}
        text = "\n".join(f"{name}: {count}" for name, count in counts.items())
        self.stdout.write(format_output(values, text, as_json=json))
