"""Run the web server alone, until SIGTERM or Ctrl-C, in one process or in several."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core import checks
from django.core.management.base import BaseCommand

from config.serving import server
from gateway import static_subscriptions
from webhooks_core.management.command_line import integer_between
from webhooks_core.worker import processes


class Command(BaseCommand):
    help = __doc__
    # These depend on the deployment. The others check the code, and would load every page of the
    # admin into a process that may serve only chat: 13 MB, a second.
    requires_system_checks = (checks.Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        server.add_address_arguments(parser)
        parser.add_argument(
            "--processes",
            type=integer_between(1, 64),
            default=1,
            metavar="N",
            help="serve the port by so many processes; default: %(default)s",
        )
        processes.add_parent_argument(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        processes.exit_with_parent(options["exit_with_parent"])
        listener = server.listen(options["host"], options["port"])
        static_subscriptions.sync_at_start()
        server.serve(listener, processes=options["processes"])
