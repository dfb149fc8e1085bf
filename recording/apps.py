"""OAuth, personal tokens and signed webhooks of recording events."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class RecordingConfig(AppConfig):
    name = "recording"

    def ready(self) -> None:
        from recording import webhooks
        from recording.accounts import lifecycle, passwords, stored_keys
        from webhooks_core import profiles
        from webhooks_core.models import reencryption
        from webhooks_core.upkeep import bootstrap

        profiles.register(
            webhooks.profile(base_url=settings.BASE_URL, local=settings.LOCAL)
        )
        lifecycle.connect_signals()
        passwords.connect_signals()
        reencryption.sources.append(stored_keys.stored_keys)
        bootstrap.schedule_after_migrate(
            self,
            "recording.accounts.personal_tokens.prune",
            name="recording: prune personal tokens",
            schedule_type="D",
        )
        bootstrap.schedule_after_migrate(
            self,
            "django.core.management.call_command",
            name="accounts: clear sessions",
            schedule_type="D",
            args="'clearsessions'",
        )
