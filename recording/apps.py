"""OAuth, personal tokens and signed webhooks of recording events."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class RecordingConfig(AppConfig):
    name = "recording"

    def ready(self) -> None:
        from recording import accounts, webhooks
        from webhooks_core import bootstrap, profiles

        profiles.register(
            webhooks.profile(base_url=settings.BASE_URL, local=settings.LOCAL)
        )
        accounts.connect_signals()
        bootstrap.schedule_after_migrate(
            self,
            "recording.tokens.prune",
            name="recording: prune personal tokens",
            schedule_type="D",
            kwargs='{"days": 30}',
        )
