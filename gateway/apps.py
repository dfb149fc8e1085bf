"""An LLM gateway with tenant webhooks."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings

from webhooks_core.profiles import WebhookProfile


class GatewayConfig(AppConfig):
    name = "gateway"

    def ready(self) -> None:
        from gateway import checks  # noqa: F401 - registers them
        from webhooks_core import profiles
        from webhooks_core.upkeep import bootstrap

        profiles.register_later(self.name, _profile)
        bootstrap.schedule_after_migrate(
            self,
            "gateway.retention.remove_old",
            name="gateway: retention",
            schedule_type="H",
        )


def _profile() -> WebhookProfile:
    from gateway import configuration, webhooks

    return webhooks.profile(
        configuration.current().webhooks,
        quota=settings.GATEWAY_SUBSCRIPTION_QUOTA,
        base_url=settings.BASE_URL,
        local=settings.LOCAL,
    )
