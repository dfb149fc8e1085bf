"""An LLM gateway with tenant webhooks."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class GatewayConfig(AppConfig):
    name = "gateway"

    def ready(self) -> None:
        from gateway import configuration, events, policy, webhooks
        from webhooks_core import bootstrap, profiles
        from webhooks_core.retry import RetryPolicy

        read = configuration.current().webhooks  # a bad file is a start-up error
        profiles.register(
            webhooks.profile(
                retry=RetryPolicy.exponential(
                    base=read.base_backoff_s,
                    cap=read.max_backoff_s,
                    max_attempts=read.max_attempts,
                ),
                timeout_s=read.timeout_s,
                enabled=read.enabled,
                quota=settings.GATEWAY_SUBSCRIPTION_QUOTA,
                base_url=settings.BASE_URL,
                local=settings.LOCAL,
                configuration=settings.GATEWAY_CONFIG,
            )
        )
        policy.set_publisher(events.publish_violation)
        bootstrap.schedule_after_migrate(
            self,
            "gateway.tasks.remove_old",
            name="gateway: retention",
            schedule_type="H",
        )
