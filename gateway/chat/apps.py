"""Chat completions: model endpoints, upstreams, streams, usage."""

from __future__ import annotations

from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "gateway.chat"
    label = "gateway_chat"
    verbose_name = "Gateway chat"

    def ready(self) -> None:
        from webhooks_core.upkeep import bootstrap

        bootstrap.schedule_after_migrate(
            self,
            "gateway.chat.metering.usage.prune",
            name="gateway: prune chat usage",
            schedule_type="H",
        )
