"""Run the background tasks, deliveries among them, until SIGTERM or Ctrl-C."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import structlog
from django.core.management.base import BaseCommand, CommandError

from webhooks_core.worker import processes
from webhooks_core.worker.cluster import ClusterFailedError, Parent

log = structlog.stdlib.get_logger(__name__)


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        processes.add_parent_argument(parser)

    def handle(
        self,
        *args: Any,
        exit_with_parent: int | None,
        **options: Any,
    ) -> None:
        processes.exit_with_parent(exit_with_parent)
        log.info("task cluster starts")
        try:
            Parent().run()
        except ClusterFailedError as error:
            raise CommandError(str(error)) from error
