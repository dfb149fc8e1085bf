"""Send the deliveries that are due, in this process: by hand, or without a task cluster."""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand

from webhooks_core.dispatch.dispatcher import dispatch
from webhooks_core.management.argument_types import seconds
from webhooks_core.management.output import (
    add_json_argument,
    counted,
    format_output,
)


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--linger",
            type=seconds(0, 86_400),
            default=0.0,
            metavar="SECONDS",
            help="wait for deliveries that fall due within this time (default: %(default)s)",
        )
        add_json_argument(parser)

    def handle(self, *args: Any, linger: float, json: bool, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        attempts = dispatch(stop=stop.is_set, linger=timedelta(seconds=linger))
        data = {"attempts": attempts}
        self.stdout.write(
            format_output(data, counted(attempts, "attempt"), as_json=json)
        )
