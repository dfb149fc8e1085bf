"""Send what is due now, in this process; for a machine without a task cluster, or by hand."""

from __future__ import annotations

import signal
from argparse import ArgumentParser
from datetime import timedelta
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand

from webhooks_core.cli.argument_types import seconds
from webhooks_core.cli.output import add_json_argument, format_output
from webhooks_core.dispatch.dispatcher import dispatch


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--linger",
            type=seconds(0, 86_400),
            default=0.0,
            metavar="SECONDS",
            help="wait for work that falls due within this time (default: %(default)s)",
        )
        add_json_argument(parser)

    def handle(self, *args: Any, linger: float, json: bool, **options: Any) -> None:
        stopped: list[int] = []

        def stop(number: int, _: FrameType | None) -> None:
            stopped.append(number)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        attempts = dispatch(
            stop=lambda: bool(stopped), linger=timedelta(seconds=linger)
        )
        told = {"attempts": attempts}
        self.stdout.write(format_output(told, f"{attempts} attempts", as_json=json))
