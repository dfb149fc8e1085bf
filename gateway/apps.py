"""An LLM gateway with tenant webhooks."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class GatewayConfig(AppConfig):
    name = "gateway"

    def ready(self) -> None:
        from gateway import (
            checks,  # noqa: F401 - registers them
            configuration,
            webhooks,
        )
        from webhooks_core import profiles
        from webhooks_core.upkeep import bootstrap

        profiles.register(
            webhooks.profile(
                configuration.current().webhooks,  # a bad file is a start-up error
                quota=settings.GATEWAY_SUBSCRIPTION_QUOTA,
                base_url=settings.BASE_URL,
                local=settings.LOCAL,
            )
        )
        bootstrap.schedule_after_migrate(
            self,
            "gateway.retention.remove_old",
            name="gateway: retention",
            schedule_type="H",
        )
