"""Remove policy decisions and documents that are older than the settings say; a worker does, hourly."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from gateway import retention


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        # As often as it takes: nobody's time-out is waiting here.
        decisions = documents = 0
        while (removed := retention.remove_old()) != retention.Removed():
            decisions += removed.decisions
            documents += removed.documents
        self.stdout.write(f"removed {decisions} decisions, {documents} documents")
