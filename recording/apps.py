"""OAuth, personal tokens and signed webhooks of recording events."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class RecordingConfig(AppConfig):
    name = "recording"

    def ready(self) -> None:
        from recording import webhooks
        from recording.accounts import lifecycle
        from webhooks_core import profiles
        from webhooks_core.upkeep import bootstrap

        profiles.register(
            webhooks.profile(base_url=settings.BASE_URL, local=settings.LOCAL)
        )
        lifecycle.connect_signals()
        bootstrap.schedule_after_migrate(
            self,
            "recording.accounts.personal_tokens.prune",
            name="recording: prune personal tokens",
            schedule_type="D",
        )
