"""Write the static subscriptions of GATEWAY_CONFIG into the database now.

`up` and `web` do so when they start; this command is for another web server, or for workers alone.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gateway import configuration, static_subscriptions
from webhooks_core.management.output import JSONCommand, format_output


class Command(JSONCommand):
    help = __doc__

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        report = static_subscriptions.sync(configuration.current())
        if options["verbosity"] == 0:
            return
        words = (
            f"static subscriptions: {report.created} created, {report.updated} updated, "
            f"{report.removed} removed"
        )
        self.stdout.write(format_output(asdict(report), words, as_json=json))
