"""Delete the personal API tokens that are revoked, expired or 90 days unused."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from recording import tokens


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"deleted {tokens.prune()}")
