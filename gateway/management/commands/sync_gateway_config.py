"""Write the static subscriptions of GATEWAY_CONFIG into the database now.

`up` and `web` do so when they start; this command is for another web server, or for workers alone.
"""

from __future__ import annotations

from typing import Any

from gateway import configuration, static_subscriptions
from webhooks_core.management.command_line import JSONCommand, format_output


class Command(JSONCommand):
    help = __doc__

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        changed = static_subscriptions.sync(configuration.current())
        if options["verbosity"]:
            text = f"static subscriptions: {changed} changed"
            values = {"changed": changed}
            self.stdout.write(format_output(values, text, as_json=json))
