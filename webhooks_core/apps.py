"""What every signed webhook needs: events, deliveries, signing, retries."""

from __future__ import annotations

from django.apps import AppConfig


class WebhooksCoreConfig(AppConfig):
    name = "webhooks_core"
    verbose_name = "Webhooks"
