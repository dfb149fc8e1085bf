"""An LLM gateway with tenant webhooks."""

from __future__ import annotations

from django.apps import AppConfig


class GatewayConfig(AppConfig):
    name = "gateway"

    def ready(self) -> None:
        from gateway import configuration

        configuration.current()  # a bad file is a start-up error
