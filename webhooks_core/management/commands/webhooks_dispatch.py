"""Send the deliveries that are due, and sweep: by hand, or from cron without a task cluster."""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand

from webhooks_core.dispatch.dispatcher import dispatch
from webhooks_core.management.command_line import integer_between
from webhooks_core.upkeep.sweep import sweep


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--linger",
            type=integer_between(0, 86_400),
            default=0,
            metavar="SECONDS",
            help="wait for deliveries that fall due within this time (default: %(default)s)",
        )

    def handle(self, *args: Any, linger: int, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        attempts = dispatch(stop=stop.is_set, linger=timedelta(seconds=linger))
        sweep()
        self.stdout.write(f"{attempts} attempts")
