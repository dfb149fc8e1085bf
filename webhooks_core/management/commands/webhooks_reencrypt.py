"""Encrypt every stored secret with the first of WEBHOOK_SECRET_KEYS, so that the others may go."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webhooks_core.models import reencryption


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        reencrypted, unreadable = reencryption.reencrypt()
        self.stdout.write(f"encrypted with the first key: {reencrypted}")
        if unreadable:
            raise CommandError(
                f"not decrypted: {unreadable}; add the missing key to WEBHOOK_SECRET_KEYS"
            )
