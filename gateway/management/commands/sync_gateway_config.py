"""Bring the static subscriptions of GATEWAY_CONFIG into the database now.

Every process does so by itself before it needs them; after a deployment that starts only
workers, this command does.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from gateway import configuration, static


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        done = static.synchronise(configuration.current())
        if options["verbosity"] == 0:
            return
        self.stdout.write(
            f"static subscriptions: {done.created} created, {done.updated} updated, "
            f"{done.removed} removed"
        )
