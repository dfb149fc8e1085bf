"""Run the background tasks, deliveries among them, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import CommandError
from django_q.management.commands.qcluster import Command as StockCommand

from webhooks_core.management.argument_types import seconds
from webhooks_core.worker import processes
from webhooks_core.worker.cluster import ClusterFailedError, Watchdog

# Longer than SQLite waits for a lock, shorter than half a minute.
UNRESPONSIVE_AFTER_S = 25

log = structlog.stdlib.get_logger(__name__)


class Command(StockCommand):  # type: ignore[misc]
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--unresponsive-after",
            type=seconds(1, 86_400 * 365),
            default=UNRESPONSIVE_AFTER_S,
            metavar="SECONDS",
            help="restart the processes if a worker was free for this time and not even a "
            "heartbeat got through (default: %(default)s)",
        )
        processes.add_parent_argument(parser)

    def handle(
        self,
        *args: Any,
        run_once: bool,
        cluster_name: str | None,
        unresponsive_after: float,
        exit_with_parent: int | None,
        **options: Any,
    ) -> None:
        processes.exit_with_parent(exit_with_parent)
        if cluster_name:
            os.environ["Q_CLUSTER_NAME"] = cluster_name
        # Another project may lack these settings.
        log.info(
            "task cluster starts",
            version=getattr(settings, "VERSION", ""),
            environment=getattr(settings, "ENVIRONMENT", ""),
            address=getattr(settings, "BASE_URL", ""),
        )
        try:
            Watchdog(unresponsive_after_s=unresponsive_after).run(once=run_once)
        except ClusterFailedError as error:
            raise CommandError(str(error)) from error
