"""Delete expired codes and tokens, and applications that registered themselves and are unused."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from recording.oauth import purge


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        for what, count in purge.purge().items():
            self.stdout.write(f"{what}: {count}")
