"""OAuth 2.1 for recording: registration, consent, tokens, metadata."""

from __future__ import annotations

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from recording.oauth import redirects


class OAuthConfig(AppConfig):
    name = "recording.oauth"
    label = "recording_oauth"
    verbose_name = "OAuth applications"

    def ready(self) -> None:
        try:
            redirects.listed(tuple(settings.OAUTH_ALLOWED_REDIRECTS))
        except ValueError as error:
            raise ImproperlyConfigured(f"OAUTH_ALLOWED_REDIRECTS: {error}") from error
        from recording.mcp.events import profile
        from webhooks_core.upkeep import bootstrap

        profile.register()
        bootstrap.schedule_after_migrate(
            self,
            "recording.mcp.events.subscriptions.end_over",
            name="mcp events: end subscriptions",
            schedule_type="I",
            minutes=1,
        )

        apps.get_app_config("oauth2_provider").verbose_name = "OAuth tokens"
        bootstrap.schedule_after_migrate(
            self, "recording.oauth.grants.prune", name="oauth: prune", schedule_type="H"
        )
