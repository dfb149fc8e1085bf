"""Encrypt every stored secret with the first of WEBHOOK_SECRET_KEYS, so that the others may go."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from webhooks_core.management.command_line import (
    JSONCommand,
    counted,
    format_output,
)
from webhooks_core.models import reencryption


class Command(JSONCommand):
    help = __doc__

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        counts = reencryption.reencrypt()
        are = "is" if counts.reencrypted == 1 else "are"
        secrets = counted(counts.reencrypted, "secret")
        text = f"{secrets} {are} encrypted with the first key"
        self.stdout.write(format_output(counts._asdict(), text, as_json=json))
        if counts.unreadable:
            raise CommandError(
                f"{counted(counts.unreadable, 'secret')} cannot be decrypted: add the missing "
                "key to WEBHOOK_SECRET_KEYS"
            )
