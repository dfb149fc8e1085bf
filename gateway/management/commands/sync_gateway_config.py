"""Write the static subscriptions of GATEWAY_CONFIG into the database now.

`up` and `web` do so when they start; this command is for another web server, or for workers alone.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from gateway import configuration, static_subscriptions


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        changed = static_subscriptions.sync(configuration.current())
        if options["verbosity"]:
            self.stdout.write(f"static subscriptions: {changed} changed")
