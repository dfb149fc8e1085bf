"""Send the deliveries that are due, and sweep: by hand, or from cron without a task cluster."""

from __future__ import annotations

import signal
import threading
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand

from webhooks_core.dispatch.dispatcher import dispatch
from webhooks_core.upkeep.sweep import sweep


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        attempts = dispatch(stop=stop.is_set, linger=timedelta(0))
        sweep()
        self.stdout.write(f"{attempts} attempts")
